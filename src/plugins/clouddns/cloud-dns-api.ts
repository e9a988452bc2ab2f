/** A client for lists of records in Google's Cloud DNS API, including sign-in. */
import type { GoogleAuth } from "google-auth-library";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { list, reasonOf, record, string } from "../../lib/net/http-client.ts";
import { SetupError, type Site } from "../../plugin/index.ts";
import { ZoneSourceError } from "../../zones/backed/zone-source.ts";
import { within } from "../../zones/backends/deadline.ts";
import { HttpStatusError, JsonClient } from "../../zones/backends/json-client.ts";
import { importOptional } from "../../zones/backends/optional-package.ts";
import { PageCircle } from "../../zones/backends/page-circle.ts";

export interface CloudDnsApiOptions {
  readonly site: Site;
  /** Replaces Google's own endpoint. */
  readonly endpoint: string | undefined;
  /** The project of the first zone, so that the library need not look it up. */
  readonly project: string;
  /** A credentials file; without it the environment's are used. */
  readonly file: string | undefined;
}

const ENDPOINT = "https://dns.googleapis.com";
const SCOPE = "https://www.googleapis.com/auth/ndev.clouddns.readonly";
/** Accepted types of credentials. */
const TYPES = ["service_account", "authorized_user", "impersonated_service_account", "external_account"];
const KIND = "dns#resourceRecordSetsListResponse";
/** Milliseconds. */
const SIGN_IN_TIME = 30_000;
/** More pages than a zone of 10 million record sets has. */
const MAX_PAGES = 100_000;

export class CloudDnsApi {
  readonly #options: CloudDnsApiOptions;
  readonly #client: JsonClient;
  #makeAuth: (() => GoogleAuth) | undefined;
  #auth: GoogleAuth | undefined;

  constructor(options: CloudDnsApiOptions) {
    this.#options = options;
    const { clock, random, machine } = options.site;
    this.#client = new JsonClient({ clock, random, environment: machine.environment });
  }

  /** @throws SetupError for an unusable file */
  async examine(): Promise<void> {
    const { file } = this.#options;
    if (file !== undefined) await checkCredentials(file);
  }

  /** @throws SetupError */
  async open(): Promise<void> {
    const { file, project: projectId } = this.#options;
    await this.examine();
    const { GoogleAuth } = await importOptional("google-auth-library", () => import("google-auth-library"));
    this.#makeAuth = () =>
      new GoogleAuth({
        scopes: [SCOPE],
        projectId,
        ...(file !== undefined && { keyFilename: file }),
      });
    this.#auth = this.#makeAuth();
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /** The record sets of a managed zone, page by page. @throws ZoneSourceError */
  async *recordSets(project: string, zone: string, signal: AbortSignal): AsyncGenerator<unknown> {
    const { endpoint = ENDPOINT } = this.#options;
    const path = `/dns/v1/projects/${encodeURIComponent(project)}/managedZones/${encodeURIComponent(zone)}/rrsets`;
    const url = new URL(path, endpoint);
    const circle = new PageCircle();
    for (let page = 0; page < MAX_PAGES; page++) {
      const body = record(await this.#get(url, signal));
      // The API omits an empty list, but not the kind.
      if (!Array.isArray(body.rrsets) && body.kind !== KIND)
        throw new ZoneSourceError(
          `GET ${url.origin}${url.pathname}: the answer is not a list of record sets`,
        );
      yield* list(body.rrsets);
      const next = string(body.nextPageToken);
      if (next === "") return;
      if (circle.closes(next)) throw new ZoneSourceError(`the record sets of ${zone} loop`);
      url.searchParams.set("pageToken", next);
    }
    throw new ZoneSourceError(`the record sets of ${zone} have no end`);
  }

  /** Sends a request with a token. If the API rejects the token, requests a new one, once, whatever its lifetime. */
  async #get(url: URL, signal: AbortSignal): Promise<unknown> {
    for (let isRenewed = false; ; isRenewed = true) {
      const headers = await this.#headers(url, signal);
      try {
        return (await this.#client.get(url, { headers, signal })).body;
      } catch (error) {
        const isRefused = error instanceof HttpStatusError && error.status === 401;
        if (!isRefused || isRenewed) throw error;
        this.#auth = this.#makeAuth?.();
      }
    }
  }

  async #headers(url: URL, signal: AbortSignal): Promise<Record<string, string>> {
    const deadline = { clock: this.#options.site.clock, milliseconds: SIGN_IN_TIME, what: "sign-in", signal };
    try {
      const headers = await within(deadline, async () => this.#auth?.getRequestHeaders(url.href));
      return Object.fromEntries(headers ?? []);
    } catch (error) {
      // The library caches the key of the file, which may have been replaced.
      this.#auth = this.#makeAuth?.();
      if (error instanceof ZoneSourceError) throw error;
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
    refuse(fileFault(error));
  }
  let type: unknown;
  try {
    ({ type } = record(JSON.parse(text)));
  } catch {
    refuse("it is not JSON");
  }
  if (!TYPES.includes(string(type)))
    refuse(`its type is ${JSON.stringify(type)}, not one of ${TYPES.join(", ")}`);
}
