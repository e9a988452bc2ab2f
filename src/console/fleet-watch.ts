/** The other replicas: found by the names in the Corefile, and queried through their own consoles. */

import { lookup } from "node:dns/promises";
import { nodeHttp } from "../lib/files/node-modules.ts";
import { messageOf } from "../lib/text/message-of.ts";
import type { FleetView, NowView, ReplicaRow, ReplicaView } from "./api-types.ts";
import { isLoopbackHost } from "./http/loopback.ts";
import { replicaNow, replicaView } from "./replica-facts.ts";

export interface FleetWatchOptions {
  /** `HOST:PORT`: the headless Service, or single replicas. */
  readonly sources: readonly string[];
  readonly token: () => string | undefined;
  /** Addresses that this server returns for a name, as text; empty without any. */
  lookUp(host: string): Promise<readonly string[]>;
  /** This replica. */
  own(): { readonly address: string; readonly now: NowView; readonly sha512: string };
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** Milliseconds that a view waits for all replicas. After that it shows those that have answered. */
  readonly viewPatience?: number;
  /** Makes the time-out for the answer of one replica. */
  readonly timeout?: (milliseconds: number) => AbortSignal;
}

/** Milliseconds that a replica has for its answer, and for which an answer is reused. */
const PATIENCE = 2_000;
const FRESH = 1_000;
/** Default of {@link FleetWatchOptions.viewPatience}. */
const VIEW_PATIENCE = 200;
/** Milliseconds for which a replica is shown as away after no name leads to it any more: the pod was replaced. */
const MOURNED = 10 * 60_000;
/** Replicas with a name, and as many again that had one. */
const MAX_REPLICAS = 64;
const MAX_ANSWER = 16 * 1024;

export class FleetWatch {
  readonly #options: FleetWatchOptions;
  #asked = Number.NEGATIVE_INFINITY;
  #round: Round | undefined;
  /** When addresses last answered: a replica that is away is shown as such, and not left out. */
  readonly #known = new Map<string, number>();

  constructor(options: FleetWatchOptions) {
    this.#options = options;
  }

  async view(): Promise<FleetView> {
    const { sources, now, viewPatience = VIEW_PATIENCE } = this.#options;
    if (sources.length === 0) {
      return { sources, replicas: [{ ...row(this.#options.own().address, ""), ...this.own() }] };
    }
    let round = this.#round;
    if (round === undefined || (round.isOver && now() - this.#asked > FRESH)) {
      this.#asked = now();
      round = new Round(sources, round?.rows ?? []);
      this.#round = round;
      round.begin(this.#ask(round), viewPatience);
    }
    await round.soon;
    return { sources, replicas: round.rows };
  }

  /** This replica, as the others see it. */
  own(): ReplicaView {
    const { now, sha512 } = this.#options.own();
    return { now: replicaNow(now), sha512 };
  }

  async #ask(round: Round): Promise<void> {
    const { sources } = this.#options;
    for (const [address, time] of this.#known)
      if (this.#options.now() - time > MOURNED) this.#known.delete(address);
    const asked = new Map<string, Promise<void>>();
    const ask = (address: string): void => {
      if (asked.has(address)) return;
      round.awaits(address);
      asked.set(
        address,
        this.#askOne(address).then((answer) => this.#take(answer, round)),
      );
    };
    // A name look-up may take as long as a replica: known replicas do not wait for it.
    for (const address of this.#known.keys()) ask(address);
    const named = new Set<string>();
    await Promise.all(
      sources.map(async (source) => {
        const { addresses, problem } = await this.#addressesOf(source);
        let leftOut = 0;
        for (const address of addresses)
          if (named.has(address) || named.size < MAX_REPLICAS) {
            named.add(address);
            ask(address);
          } else leftOut++;
        round.found(source, leftOut > 0 ? `${leftOut} more replicas: ${MAX_REPLICAS} are asked` : problem);
      }),
    );
    await Promise.all(asked.values());
  }

  #take(answer: ReplicaRow, round: Round): void {
    round.answered(answer);
    if (answer.now === null) return;
    this.#known.set(answer.address, this.#options.now());
    for (const address of this.#known.keys())
      if (this.#known.size > MAX_REPLICAS) this.#known.delete(address);
  }

  async #addressesOf(source: string): Promise<FoundAddresses> {
    const at = source.lastIndexOf(":");
    const host = source.slice(0, at).replace(/^\[(.*)\]$/, "$1");
    const port = source.slice(at + 1);
    // On one machine the port distinguishes replicas, and the name may have a second address without a listener.
    if (isLoopbackHost(host)) return { source, addresses: [source], problem: "" };
    const withPort = (address: string): string =>
      `${address.includes(":") ? `[${address}]` : address}:${port}`;
    try {
      // A pod of the cluster's DNS uses its node's resolver, which does not serve the cluster: so this server is
      // queried.
      const own = await this.#options.lookUp(host);
      if (own.length > 0) return { source, addresses: own.map(withPort), problem: "" };
      const found = await lookup(host, { all: true });
      return { source, addresses: found.map(({ address }) => withPort(address)), problem: "" };
    } catch (error) {
      return { source, addresses: [], problem: messageOf(error) };
    }
  }

  async #askOne(address: string): Promise<ReplicaRow> {
    try {
      const view = replicaView(await this.#get(address, "/api/v1/replica"));
      if (view === undefined)
        return away(address, "answers, but not as a console of this version of Portolan");
      return { ...row(address, ""), ...view };
    } catch (error) {
      return away(address, reasonOf(error));
    }
  }

  #get(address: string, path: string): Promise<unknown> {
    const { timeout = (milliseconds: number) => AbortSignal.timeout(milliseconds) } = this.#options;
    const token = this.#options.token();
    const at = address.lastIndexOf(":");
    const host = address.slice(0, at).replace(/^\[(.*)\]$/, "$1");
    return new Promise((resolve, reject) => {
      const sent = nodeHttp().get({
        host,
        port: Number(address.slice(at + 1)),
        path,
        // A kept connection may have been closed by the replica, which would then seem to be away.
        agent: false,
        signal: timeout(PATIENCE),
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
          else response.destroy(new Error("its answer is too large"));
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

/** All replicas, queried once. Until one answers, it is shown with its answer of the previous round. */
class Round {
  /** Resolves when all have answered, or the view's patience has run out. */
  soon: Promise<void> = Promise.resolve();
  isOver = false;
  readonly #former: ReadonlyMap<string, ReplicaRow>;
  /** By address; `undefined` until the answer. */
  readonly #replicas = new Map<string, ReplicaRow | undefined>();
  /** By name in the Corefile: names whose look-up is pending or has failed. */
  readonly #names: Map<string, ReplicaRow | undefined>;

  constructor(sources: readonly string[], former: readonly ReplicaRow[]) {
    this.#former = new Map(former.map((each) => [each.address, each]));
    this.#names = new Map(sources.map((source) => [source, undefined]));
  }

  begin(work: Promise<void>, patience: number): void {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, patience);
    this.soon = promise;
    void work.finally(() => {
      this.isOver = true;
      clearTimeout(timer);
      resolve();
    });
  }

  awaits(address: string): void {
    this.#replicas.set(address, undefined);
  }

  answered(replica: ReplicaRow): void {
    this.#replicas.set(replica.address, replica);
  }

  /** @param problem empty if addresses were found */
  found(source: string, problem: string): void {
    if (problem === "") this.#names.delete(source);
    else this.#names.set(source, away(source, problem));
  }

  get rows(): ReplicaRow[] {
    const rows = new Map<string, ReplicaRow>();
    // Until a name is looked up, its previous addresses are shown.
    if ([...this.#names.values()].includes(undefined))
      for (const [address, replica] of this.#former) rows.set(address, replica);
    for (const [address, answer] of this.#replicas)
      rows.set(address, answer ?? this.#former.get(address) ?? awaited(address));
    for (const [name, problem] of this.#names)
      if (problem !== undefined) rows.set(name, problem);
      else if (this.#former.size === 0) rows.set(name, awaited(name));
    const isName = ({ address }: ReplicaRow): number => Number(this.#names.has(address));
    return [...rows.values()].sort(
      (one, other) => isName(one) - isName(other) || (one.address < other.address ? -1 : 1),
    );
  }
}

interface FoundAddresses {
  readonly source: string;
  readonly addresses: readonly string[];
  readonly problem: string;
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused (ECONNREFUSED)",
  EHOSTUNREACH: "no route to host (EHOSTUNREACH)",
  ENETUNREACH: "network is unreachable (ENETUNREACH)",
  ECONNRESET: "connection reset by peer (ECONNRESET)",
};

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return REASONS["code" in error ? String(error.code) : ""] ?? error.message;
}

function away(address: string, problem: string): ReplicaRow {
  return row(address, problem);
}

function awaited(address: string): ReplicaRow {
  return { ...row(address, ""), awaited: true };
}

function row(address: string, problem: string): ReplicaRow {
  return { address, now: null, sha512: "", problem, awaited: false };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
