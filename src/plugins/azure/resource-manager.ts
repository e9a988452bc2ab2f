/** A client for lists of records in Azure's Resource Manager, including sign-in. */
import type { TokenCredential } from "@azure/identity";
import { list, reasonOf, record, string } from "../../lib/net/http-client.ts";
import { SetupError, type Site } from "../../plugin/index.ts";
import { ZoneSourceError } from "../../zones/backed/zone-source.ts";
import { within } from "../../zones/backends/deadline.ts";
import { HttpStatusError, JsonClient } from "../../zones/backends/json-client.ts";
import { importOptional } from "../../zones/backends/optional-package.ts";
import { PageCircle } from "../../zones/backends/page-circle.ts";
import { type Cloud, isAuthority } from "./clouds.ts";

export interface ResourceManagerOptions {
  readonly site: Site;
  /** `undefined` if the environment names an unknown cloud. */
  readonly cloud: Cloud | undefined;
  /** Replaces the cloud's own endpoint. */
  readonly endpoint: string | undefined;
  readonly subscription: string;
  readonly tenant: string | undefined;
  readonly client: string | undefined;
  readonly secret: string | undefined;
}

type Identity = typeof import("@azure/identity");

/** Milliseconds. */
const SIGN_IN_TIME = 30_000;
/** More pages than a zone of 10 million record sets has. */
const MAX_PAGES = 100_000;

export class ResourceManager {
  readonly #options: ResourceManagerOptions;
  readonly #client: JsonClient;
  #identity: Identity | undefined;
  #credential: TokenCredential | undefined;

  constructor(options: ResourceManagerOptions) {
    this.#options = options;
    const { clock, random, machine } = options.site;
    this.#client = new JsonClient({ clock, random, environment: machine.environment });
  }

  /** @throws SetupError */
  async open(): Promise<void> {
    const { cloud, subscription, site } = this.#options;
    if (cloud === undefined)
      throw new SetupError(
        `cannot set azure environment: AZURE_ENVIRONMENT is "${site.machine.environment.AZURE_ENVIRONMENT}"`,
      );
    if (subscription === "")
      throw new SetupError(
        "azure: no subscription: write it into the Corefile, or set AZURE_SUBSCRIPTION_ID",
      );
    this.#identity = await importOptional("@azure/identity", () => import("@azure/identity"));
    this.#credential = this.#makeCredential(this.#identity, cloud);
  }

  #makeCredential(identity: Identity, cloud: Cloud): TokenCredential {
    const { tenant, client, secret, site } = this.#options;
    // AZURE_AUTHORITY_HOST is for clouds that are not in the list.
    const { AZURE_AUTHORITY_HOST } = site.machine.environment;
    const authorityHost = AZURE_AUTHORITY_HOST || cloud.authority;
    // The public cloud has no metadata about other authorities.
    const disableInstanceDiscovery = !isAuthority(authorityHost);
    if (secret !== undefined && client !== undefined && tenant !== undefined)
      return new identity.ClientSecretCredential(tenant, client, secret, {
        authorityHost,
        disableInstanceDiscovery,
      });
    const options = {
      authorityHost,
      disableInstanceDiscovery,
      ...(tenant !== undefined && { tenantId: tenant }),
    };
    const named = client !== undefined && { clientId: client };
    // With this variable the SDK chooses, possibly the tools of developers: these start programs, which a pod does
    // not have.
    if (site.machine.environment.AZURE_TOKEN_CREDENTIALS)
      return new identity.DefaultAzureCredential({
        ...options,
        ...(client !== undefined && { managedIdentityClientId: client, workloadIdentityClientId: client }),
      });
    const { AZURE_FEDERATED_TOKEN_FILE: tokenFilePath } = site.machine.environment;
    return new identity.ChainedTokenCredential(
      new identity.EnvironmentCredential(options),
      ...(tokenFilePath
        ? [new identity.WorkloadIdentityCredential({ ...options, ...named, tokenFilePath })]
        : []),
      new identity.ManagedIdentityCredential({ ...options, ...named }),
    );
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /**
   * The entries of a list below a resource group, page by page. @param path below the group, such as
   * `/providers/Microsoft.Network/…` @throws ZoneSourceError
   */
  async *entries(group: string, path: string, version: string, signal: AbortSignal): AsyncGenerator<unknown> {
    const { subscription } = this.#options;
    const base = this.#endpoint;
    const scope = `/subscriptions/${encodeURIComponent(subscription)}/resourceGroups/${encodeURIComponent(group)}`;
    let url = new URL(`${scope}${path}?api-version=${version}`, base);
    const circle = new PageCircle();
    for (let page = 0; page < MAX_PAGES; page++) {
      const body = record(await this.#get(url, signal));
      if (!Array.isArray(body.value))
        throw new ZoneSourceError(
          `GET ${url.origin}${url.pathname}: the answer is not a list of record sets`,
        );
      yield* list(body.value);
      const next = string(body.nextLink);
      if (next === "") return;
      url = new URL(next, base);
      if (circle.closes(url.href)) throw new ZoneSourceError("the list loops");
      // The token is for the Resource Manager, and must not be sent elsewhere.
      if (url.origin !== new URL(base).origin) throw new ZoneSourceError(`the next page is at ${url.origin}`);
    }
    throw new ZoneSourceError("the list has no end");
  }

  /** Sends a request with a token. If the API rejects the token, requests a new one, once, whatever its lifetime. */
  async #get(url: URL, signal: AbortSignal): Promise<unknown> {
    for (let isRenewed = false; ; isRenewed = true) {
      const headers = { authorization: `Bearer ${await this.#token(signal)}` };
      try {
        return (await this.#client.get(url, { headers, signal })).body;
      } catch (error) {
        const isRefused = error instanceof HttpStatusError && error.status === 401;
        const { cloud } = this.#options;
        if (!isRefused || isRenewed || this.#identity === undefined || cloud === undefined) throw error;
        this.#credential = this.#makeCredential(this.#identity, cloud);
      }
    }
  }

  get #endpoint(): string {
    return this.#options.endpoint ?? this.#options.cloud?.resourceManager ?? "";
  }

  async #token(signal: AbortSignal): Promise<string> {
    const scope = `${this.#options.cloud?.resourceManager}/.default`;
    const deadline = { clock: this.#options.site.clock, milliseconds: SIGN_IN_TIME, what: "sign-in", signal };
    try {
      const token = await within(deadline, async (abortSignal) =>
        this.#credential?.getToken(scope, { abortSignal }),
      );
      return token?.token ?? "";
    } catch (error) {
      if (error instanceof ZoneSourceError) throw error;
      throw new ZoneSourceError(`sign-in: ${signInFault(error)}`, { isTransient: true });
    }
  }
}

/** Reports the fault of the only configured way to sign in. */
function signInFault(error: unknown): string {
  if (!(error instanceof AggregateError) && !(error instanceof Error && "errors" in error))
    return reasonOf(error);
  const faults = list(error.errors).map((each) => reasonOf(each).replace(/ To troubleshoot, visit .*/, ""));
  const found = faults.filter((fault) => !/is unavailable/i.test(fault));
  if (found.length > 0) return found.join("; ");
  return "there is no secret and no federated token in the environment, and no managed identity";
}
