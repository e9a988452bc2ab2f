/** Google's Cloud DNS API, as far as lists of records go, and how to sign in to it. */
import type { GoogleAuth } from "google-auth-library";
import { list, reasonOf, record, string } from "../../lib/http-client.ts";
import { readTextFile, SetupError, type Site } from "../../plugin/index.ts";
import { JsonClient } from "../../zones/backends/json-client.ts";
import { importOptional } from "../../zones/backends/optional-package.ts";
import { ZoneSourceError } from "../../zones/zone-source.ts";

export interface CloudDnsApiOptions {
  readonly site: Site;
  /** In place of Google's own. */
  readonly endpoint: string | undefined;
  /** Of the first zone: the library need not find out. */
  readonly project: string;
  /** A file of credentials; without it those of the environment. */
  readonly file: string | undefined;
}

const ENDPOINT = "https://dns.googleapis.com";
const SCOPE = "https://www.googleapis.com/auth/ndev.clouddns.readonly";
/** What a file may hold (CoreDNS facts 2.45). */
const TYPES = ["service_account", "authorized_user", "impersonated_service_account", "external_account"];
/** More pages than a zone of 10 million record sets would have. */
const MAX_PAGES = 100_000;

export class CloudDnsApi {
  readonly #options: CloudDnsApiOptions;
  readonly #client: JsonClient;
  #auth: GoogleAuth | undefined;

  constructor(options: CloudDnsApiOptions) {
    this.#options = options;
    const { clock, random, machine } = options.site;
    this.#client = new JsonClient({ clock, random, environment: machine.environment });
  }

  /** @throws SetupError */
  async open(): Promise<void> {
    const { file, project: projectId } = this.#options;
    if (file !== undefined) await checkCredentials(file);
    const { GoogleAuth } = await importOptional("google-auth-library", () => import("google-auth-library"));
    this.#auth = new GoogleAuth({
      scopes: [SCOPE],
      projectId,
      ...(file !== undefined && { keyFilename: file }),
    });
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** The record sets of a managed zone, page by page. @throws ZoneSourceError */
  async *recordSets(project: string, zone: string, signal: AbortSignal): AsyncGenerator<unknown> {
    const { endpoint = ENDPOINT } = this.#options;
    const path = `/dns/v1/projects/${encodeURIComponent(project)}/managedZones/${encodeURIComponent(zone)}/rrsets`;
    const url = new URL(path, endpoint);
    for (let page = 0; page < MAX_PAGES; page++) {
      const headers = await this.#headers(url);
      const body = record((await this.#client.get(url, { headers, signal })).body);
      yield* list(body.rrsets);
      const next = string(body.nextPageToken);
      if (next === "") return;
      url.searchParams.set("pageToken", next);
    }
    throw new ZoneSourceError(`the record sets of ${zone} have no end`);
  }

  async #headers(url: URL): Promise<Record<string, string>> {
    try {
      const headers = await this.#auth?.getRequestHeaders(url.href);
      return Object.fromEntries(headers ?? []);
    } catch (error) {
      throw new ZoneSourceError(`sign-in: ${reasonOf(error)}`, { isTransient: true });
    }
  }
}

async function checkCredentials(file: string): Promise<void> {
  const refuse = (reason: string): never => {
    throw new SetupError(`invalid credentials file "${file}": ${reason}`);
  };
  let text = "";
  try {
    text = await readTextFile(file);
  } catch (error) {
    refuse(reasonOf(error));
  }
  let type: unknown;
  try {
    ({ type } = record(JSON.parse(text)));
  } catch {
    refuse("it is no JSON");
  }
  if (!TYPES.includes(string(type)))
    refuse(`its type is ${JSON.stringify(type)}, and none of ${TYPES.join(", ")}`);
}
