/** Queries over UDP at a given rate, whatever the server does, and how long each answer took. */
import { HEADER_OCTETS } from "../../src/dns/message.ts";
import { BATCH } from "../../src/runtime/linux/datagram-batch.ts";
import { seededRandom } from "../numbers/random.ts";
import { Arrivals } from "./arrivals.ts";
import { DurationLog } from "./duration-log.ts";
import type { TimedLoad } from "./load-result.ts";
import type { QueryPool } from "./query-pool.ts";
import { RcodeCounter } from "./rcode-counter.ts";
import type { PolledSocket } from "./udp-socket.ts";

export interface OpenLoopOptions {
  readonly queries: QueryPool;
  /** Where in the queries to begin. */
  readonly firstQuery: number;
  /** Queries per second. */
  readonly rate: number;
  readonly seconds: number;
  /** Milliseconds that answers may take after the last query. */
  readonly patience: number;
  /**
   * What to do while nothing is due: ask the socket again and again, which sees an answer at once; or sleep, where another
   * process needs the core.
   */
  readonly idle: "spin" | "sleep";
}

const IDS = 0x10000;
/** Marks an id whose query was answered, or was never sent. */
const FREE = -1;
const SEED = 20_240_601;

/**
 * Runs to the end without giving way to anything else in this process.
 *
 * A query counts as lost when `patience` is over, or when its id is needed for the query that comes 65,536 later.
 */
export function runUdpOpenLoop(socket: PolledSocket, options: OpenLoopOptions): TimedLoad {
  const run = new OpenLoopRun(socket, options);
  while (run.turn());
  return run.result();
}

/** The work of each turn is in methods, so that code compiled in one run serves the next from its first query on. */
class OpenLoopRun {
  readonly #socket: PolledSocket;
  readonly #options: OpenLoopOptions;
  readonly #start: number = performance.now();
  readonly #end: number;
  readonly #arrivals: Arrivals;
  readonly #dueOf: Float64Array = new Float64Array(IDS).fill(FREE);
  readonly #latencies: DurationLog;
  readonly #delays: DurationLog;
  readonly #rcodes = new RcodeCounter();
  #sent = 0;
  #answered = 0;
  #lastSent = this.#start;
  #lastAnswer = this.#start;

  constructor(socket: PolledSocket, options: OpenLoopOptions) {
    const { rate, seconds } = options;
    this.#socket = socket;
    this.#options = options;
    this.#end = this.#start + seconds * 1000;
    this.#arrivals = new Arrivals(this.#start, rate, seededRandom(SEED));
    this.#latencies = new DurationLog(rate * seconds * 1.05);
    this.#delays = new DurationLog(rate * seconds * 1.05);
  }

  /** Sends what is due and takes what has come. @returns false when all is done */
  turn(): boolean {
    const { idle, patience } = this.#options;
    const sending = this.#arrivals.due < this.#end;
    if (sending) this.#sendDue();
    if (this.#takeAnswers() === 0 && idle === "sleep") {
      const wake = sending ? this.#arrivals.due : this.#lastSent + patience;
      const rest = wake - performance.now();
      if (rest > 0) this.#socket.wait(rest);
    }
    return sending || (this.#answered < this.#sent && performance.now() < this.#lastSent + patience);
  }

  result(): TimedLoad {
    return {
      sent: this.#sent,
      answered: this.#answered,
      lost: this.#sent - this.#answered,
      seconds: (this.#lastAnswer - this.#start) / 1000,
      rcodes: this.#rcodes.byName,
      latency: this.#latencies.percentiles(),
      sendDelay: this.#delays.percentiles(),
    };
  }

  #sendDue(): void {
    const { sending } = this.#socket;
    const { queries, firstQuery } = this.#options;
    const arrivals = this.#arrivals;
    const now = performance.now();
    for (let room = BATCH; room > 0 && arrivals.due <= now && arrivals.due < this.#end; room--) {
      const id = this.#sent % IDS;
      sending.commit(queries.write(firstQuery + this.#sent, id, sending.buffer()));
      this.#dueOf[id] = arrivals.due;
      this.#delays.add(now - arrivals.due);
      this.#lastSent = now;
      arrivals.advance();
      this.#sent++;
    }
    if (!sending.isEmpty) sending.flush();
  }

  /** @returns how many datagrams came */
  #takeAnswers(): number {
    const count = this.#socket.receive();
    if (count === 0) return 0;
    const { received } = this.#socket;
    const now = performance.now();
    for (let slot = 0; slot < count; slot++) {
      const message = received.slots[slot];
      if (message === undefined || received.length(slot) < HEADER_OCTETS) continue;
      const id = ((message[0] ?? 0) << 8) | (message[1] ?? 0);
      const due = this.#dueOf[id] ?? FREE;
      if (due === FREE) continue;
      this.#dueOf[id] = FREE;
      this.#latencies.add(now - due);
      this.#rcodes.add(message);
      this.#answered++;
      this.#lastAnswer = now;
    }
    return count;
  }
}
