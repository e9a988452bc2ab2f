/** Finds repeated queries in a stream, with memory for the last seconds only. */
import type { QueryRow } from "../api-types.ts";
import type { Asker } from "./query-groups.ts";
import { workloadName, workloadText } from "./workload-names.ts";

/** Milliseconds until a C library retries (resolv.conf(5): 5 s, some programs 1 s). */
const PATIENCE = 10_000;
/** A reply that took longer, in milliseconds, may have come too late. */
const SLOW = 900;
/** Rows within which those of several threads are put in order. */
const WINDOW = 2_048;
/** Questions, and clients, in memory. */
const MOST_QUESTIONS = 16_384;
const MOST_CLIENTS = 4_096;
/** Clients with fewer repeats are evicted first. */
const FEW = 10;

export interface Repeating {
  retries: number;
  /** Repeats of queries that had been answered in time: the reply was lost on its way. */
  lost: number;
}

interface Question {
  readonly time: number;
  readonly hasFailed: boolean;
  readonly duration: number;
}

export class Repeats {
  readonly #window: QueryRow[] = [];
  #isInOrder = true;
  /** The oldest first. */
  readonly #before = new Map<string, Question>();
  readonly #clients = new Map<Asker["who"], Repeating>();

  add(row: QueryRow): void {
    if (row.time < (this.#window.at(-1)?.time ?? row.time)) this.#isInOrder = false;
    this.#window.push(row);
    if (this.#window.length >= WINDOW) this.#pass(WINDOW / 2);
  }

  /** The repeats by client, once all rows were added. */
  finish(): ReadonlyMap<string, Readonly<Repeating>> {
    this.#pass(this.#window.length);
    return this.#clients;
  }

  #pass(count: number): void {
    if (!this.#isInOrder) this.#window.sort((one, other) => one.time - other.time);
    this.#isInOrder = true;
    for (const row of this.#window.splice(0, count)) this.#look(row);
  }

  #look(row: QueryRow): void {
    const question = `${row.client} ${row.name.toLowerCase()} ${row.type}`;
    const failed = `${question} failed`;
    const same = `${question} ${row.port} ${row.id}`;
    const first = this.#before.get(same) ?? this.#before.get(failed);
    if (first !== undefined && row.time - first.time < PATIENCE && row.time >= first.time)
      this.#count(row, !first.hasFailed && first.duration < SLOW);
    const asked = { time: row.time, hasFailed: hasFailed(row), duration: row.duration };
    this.#remember(same, asked);
    if (asked.hasFailed) this.#remember(failed, asked);
    else this.#before.delete(failed);
  }

  #remember(key: string, asked: Question): void {
    this.#before.delete(key);
    this.#before.set(key, asked);
    for (const [oldest, { time }] of this.#before) {
      if (this.#before.size <= MOST_QUESTIONS && asked.time - time < PATIENCE) return;
      this.#before.delete(oldest);
    }
  }

  #count({ workload, client }: QueryRow, wasLost: boolean): void {
    const who = workload === undefined ? client : workloadText(workloadName(workload));
    let sums = this.#clients.get(who);
    if (sums === undefined) {
      if (this.#clients.size >= MOST_CLIENTS)
        for (const [each, { retries }] of this.#clients) if (retries < FEW) this.#clients.delete(each);
      if (this.#clients.size >= MOST_CLIENTS) return;
      sums = { retries: 0, lost: 0 };
      this.#clients.set(who, sums);
    }
    sums.retries++;
    if (wasLost) sums.lost++;
  }
}

function hasFailed({ rcode }: QueryRow): boolean {
  return rcode === "SERVFAIL" || rcode === "-" || rcode === "REFUSED";
}
