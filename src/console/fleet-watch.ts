/** The other replicas: found under the names in the Corefile, asked over their own consoles. */
import { lookup } from "node:dns/promises";
import { textMember } from "../kubernetes/objects/json.ts";
import { nodeHttp } from "../lib/node-modules.ts";
import type { FleetView, NowView, ReplicaRow } from "./api-types.ts";
import { isLoopbackHost } from "./http/loopback.ts";
import { replicaNow } from "./replica-facts.ts";

export interface FleetOptions {
  /** `HOST:PORT`: the headless Service, or single replicas. */
  readonly sources: readonly string[];
  readonly token: () => string | undefined;
  /** Addresses that the server itself answers with for a name, as text; none where it has none. */
  lookUp(host: string): Promise<readonly string[]>;
  /** This replica. */
  own(): { readonly address: string; readonly now: NowView; readonly sha512: string };
  /** Milliseconds that never go back. */
  readonly now: () => number;
}

/** Milliseconds that a replica has for its answer, and for which an answer is good enough for the next who asks. */
const PATIENCE = 2_000;
const FRESH = 1_000;
/** Milliseconds for which one that has answered is shown as away, once nothing names it any more: the pod was replaced. */
const MOURNED = 10 * 60_000;
const MAX_REPLICAS = 64;
const MAX_ANSWER = 256 * 1024;

export class FleetWatch {
  readonly #options: FleetOptions;
  #asked = Number.NEGATIVE_INFINITY;
  #answer: Promise<FleetView> | undefined;
  /** When addresses last answered: one that is away is shown as such, and not left out. */
  readonly #known = new Map<string, number>();

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  view(): Promise<FleetView> {
    const now = this.#options.now();
    if (this.#answer === undefined || now - this.#asked > FRESH) {
      this.#asked = now;
      this.#answer = this.#ask();
    }
    return this.#answer;
  }

  async #ask(): Promise<FleetView> {
    const { sources } = this.#options;
    if (sources.length === 0) {
      const { address, now, sha512 } = this.#options.own();
      return { sources, replicas: [{ address, now: replicaNow(now) ?? null, sha512, problem: "" }] };
    }
    const found = await Promise.all(sources.map((source) => this.#addressesOf(source)));
    const problems = found.flatMap(({ problem, source }) => (problem === "" ? [] : [away(source, problem)]));
    for (const [address, time] of this.#known)
      if (this.#options.now() - time > MOURNED) this.#known.delete(address);
    const addresses = [...new Set([...found.flatMap((each) => each.addresses), ...this.#known.keys()])];
    const replicas = await Promise.all(
      addresses
        .sort()
        .slice(0, MAX_REPLICAS)
        .map((address) => this.#askOne(address)),
    );
    for (const { address, now } of replicas) if (now !== null) this.#known.set(address, this.#options.now());
    for (const address of this.#known.keys())
      if (this.#known.size > MAX_REPLICAS) this.#known.delete(address);
    return { sources, replicas: [...replicas, ...problems] };
  }

  async #addressesOf(source: string): Promise<FoundAddresses> {
    const at = source.lastIndexOf(":");
    const host = source.slice(0, at).replace(/^\[(.*)\]$/, "$1");
    const port = source.slice(at + 1);
    // On one machine the port tells replicas apart, and the name may have a second address that nobody listens on.
    if (isLoopbackHost(host)) return { source, addresses: [source], problem: "" };
    const withPort = (address: string): string =>
      `${address.includes(":") ? `[${address}]` : address}:${port}`;
    try {
      // A pod of the cluster's DNS asks its node's resolver, which knows nothing of the cluster: the server itself does.
      const own = await this.#options.lookUp(host);
      if (own.length > 0) return { source, addresses: own.map(withPort), problem: "" };
      const found = await lookup(host, { all: true });
      return { source, addresses: found.map(({ address }) => withPort(address)), problem: "" };
    } catch (error) {
      return { source, addresses: [], problem: error instanceof Error ? error.message : String(error) };
    }
  }

  async #askOne(address: string): Promise<ReplicaRow> {
    try {
      const [now, configuration] = await Promise.all([
        this.#get(address, "/api/v1/now"),
        this.#get(address, "/api/v1/configuration"),
      ]);
      const known = replicaNow(now);
      if (known === undefined)
        return away(address, "answers, but is not a console of this version of Portolan");
      return { address, now: known, sha512: textMember(configuration, "sha512"), problem: "" };
    } catch (error) {
      return away(address, reasonOf(error));
    }
  }

  #get(address: string, path: string): Promise<unknown> {
    const token = this.#options.token();
    const at = address.lastIndexOf(":");
    const host = address.slice(0, at).replace(/^\[(.*)\]$/, "$1");
    return new Promise((resolve, reject) => {
      const sent = nodeHttp().get({
        host,
        port: Number(address.slice(at + 1)),
        path,
        // One that was kept may have been closed over there: the replica would seem to be away.
        agent: false,
        signal: AbortSignal.timeout(PATIENCE),
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      });
      sent.once("error", (error) =>
        reject(
          error.name === "TimeoutError" || error.name === "AbortError"
            ? new Error(`no answer within ${PATIENCE / 1000} s`)
            : error,
        ),
      );
      sent.once("response", (response) => {
        const chunks: Buffer[] = [];
        let length = 0;
        response.on("data", (chunk: Buffer) => {
          length += chunk.length;
          if (length <= MAX_ANSWER) chunks.push(chunk);
          else response.destroy(new Error("answers with too much"));
        });
        response.once("error", reject);
        response.once("end", () => {
          if (response.statusCode !== 200) reject(new Error(`answers with status ${response.statusCode}`));
          else resolve(parsed(Buffer.concat(chunks).toString()));
        });
      });
    });
  }
}

interface FoundAddresses {
  readonly source: string;
  readonly addresses: readonly string[];
  readonly problem: string;
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there (ECONNREFUSED)",
  EHOSTUNREACH: "no way leads there (EHOSTUNREACH)",
  ENETUNREACH: "no way leads there (ENETUNREACH)",
  ECONNRESET: "it hung up (ECONNRESET)",
};

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return REASONS["code" in error ? String(error.code) : ""] ?? error.message;
}

function away(address: string, problem: string): ReplicaRow {
  return { address, now: null, sha512: "", problem };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
