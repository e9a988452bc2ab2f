/** Azure's Resource Manager, as far as lists of records go, and how to sign in to it. */
import type { TokenCredential } from "@azure/identity";
import { list, reasonOf, record, string } from "../../lib/http-client.ts";
import { SetupError, type Site } from "../../plugin/index.ts";
import { JsonClient } from "../../zones/backends/json-client.ts";
import { importOptional } from "../../zones/backends/optional-package.ts";
import { ZoneSourceError } from "../../zones/zone-source.ts";
import { type Cloud, isAuthority } from "./clouds.ts";

export interface ResourceManagerOptions {
  readonly site: Site;
  /** `undefined` where the environment names one that there is not. */
  readonly cloud: Cloud | undefined;
  /** In place of the cloud's own. */
  readonly endpoint: string | undefined;
  readonly subscription: string;
  readonly tenant: string | undefined;
  readonly client: string | undefined;
  readonly secret: string | undefined;
}

/** More pages than a zone of 10 million record sets would have. */
const MAX_PAGES = 100_000;

export class ResourceManager {
  readonly #options: ResourceManagerOptions;
  readonly #client: JsonClient;
  #credential: TokenCredential | undefined;

  constructor(options: ResourceManagerOptions) {
    this.#options = options;
    const { clock, random, machine } = options.site;
    this.#client = new JsonClient({ clock, random, environment: machine.environment });
  }

  /** @throws SetupError */
  async open(): Promise<void> {
    const { cloud, subscription, tenant, client, secret, site } = this.#options;
    if (cloud === undefined)
      throw new SetupError(
        `cannot set azure environment: AZURE_ENVIRONMENT is "${site.machine.environment.AZURE_ENVIRONMENT}"`,
      );
    if (subscription === "")
      throw new SetupError(
        "azure: no subscription: write it into the Corefile, or set AZURE_SUBSCRIPTION_ID",
      );
    const identity = await importOptional("@azure/identity", () => import("@azure/identity"));
    // AZURE_AUTHORITY_HOST is for those whose cloud is none of these.
    const { AZURE_AUTHORITY_HOST } = site.machine.environment;
    const authorityHost = AZURE_AUTHORITY_HOST || cloud.authority;
    // The public cloud knows nothing of those.
    const disableInstanceDiscovery = !isAuthority(authorityHost);
    if (secret !== undefined && client !== undefined && tenant !== undefined)
      this.#credential = new identity.ClientSecretCredential(tenant, client, secret, {
        authorityHost,
        disableInstanceDiscovery,
      });
    else
      this.#credential = new identity.DefaultAzureCredential({
        authorityHost,
        disableInstanceDiscovery,
        ...(tenant !== undefined && { tenantId: tenant }),
        ...(client !== undefined && { managedIdentityClientId: client, workloadIdentityClientId: client }),
      });
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /**
   * The entries of a list below a resource group, page by page.
   * @param path behind the group, such as `/providers/Microsoft.Network/…`
   * @throws ZoneSourceError
   */
  async *entries(group: string, path: string, version: string, signal: AbortSignal): AsyncGenerator<unknown> {
    const { subscription } = this.#options;
    const base = this.#endpoint;
    const scope = `/subscriptions/${encodeURIComponent(subscription)}/resourceGroups/${encodeURIComponent(group)}`;
    let url = new URL(`${scope}${path}?api-version=${version}`, base);
    for (let page = 0; page < MAX_PAGES; page++) {
      const headers = { authorization: `Bearer ${await this.#token(signal)}` };
      const body = record((await this.#client.get(url, { headers, signal })).body);
      yield* list(body.value);
      const next = string(body.nextLink);
      if (next === "") return;
      url = new URL(next, base);
      // The token is for the Resource Manager, and goes nowhere else.
      if (url.origin !== new URL(base).origin) throw new ZoneSourceError(`the next page is at ${url.origin}`);
    }
    throw new ZoneSourceError("the list has no end");
  }

  get #endpoint(): string {
    return this.#options.endpoint ?? this.#options.cloud?.resourceManager ?? "";
  }

  async #token(abortSignal: AbortSignal): Promise<string> {
    const scope = `${this.#options.cloud?.resourceManager}/.default`;
    try {
      const token = await this.#credential?.getToken(scope, { abortSignal });
      return token?.token ?? "";
    } catch (error) {
      throw new ZoneSourceError(`sign-in: ${reasonOf(error)}`, { isTransient: true });
    }
  }
}
