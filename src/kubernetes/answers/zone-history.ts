/**
 * What changed in a zone of the cluster from one copy to the next, for secondaries that have an older one (IXFR, RFC 1995).
 *
 * Nothing is recorded until a client transfers the zone. While that copy goes out its records are kept, as octets. From then on the state
 * is cut at most once a second: names of services that changed are gathered, and what they come to is compared with what is kept.
 * Serials are times in seconds, so one state a second keeps them from running ahead of the clock.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import { isAsNew, type StartOfAuthority, type ZoneTransfer } from "../../plugin/contract/transfer.ts";
import { ZoneJournal } from "../../zones/changes/zone-journal.ts";
import { RecordLog } from "../../zones/data/record-log.ts";
import { HandedRecords } from "./handed-records.ts";
import type { ServiceState } from "./service-states.ts";

/** A zone as it is at each moment. */
export interface LiveZone {
  /** The serial of now. */
  serial(): number;
  /** With the serial of now, which no later state gets. */
  seal(): StartOfAuthority;
  /** Records that belong to no service, without the SOA record. */
  server(): readonly ResourceRecord[];
  /** All services that it shows. */
  states(): readonly ServiceState[];
  /** One of them, by its key. */
  state(key: string): ServiceState | undefined;
  recordsOf(state: ServiceState): readonly ResourceRecord[];
}

export interface ZoneHistoryOptions {
  readonly zone: LiveZone;
  readonly clock: Clock;
  /** There are changes that secondaries can be told of. */
  readonly changed: () => void;
}

/** One state, before its differences are found. */
interface Cut {
  readonly soa: StartOfAuthority;
  readonly server: readonly ResourceRecord[];
  readonly touched: readonly (readonly [key: string, state: ServiceState | undefined])[];
}

/** Stands for what belongs to no service: no key is empty. */
const SERVER = "";
/** Milliseconds from a change to the cut, so that changes that belong together stay together. */
const SHORTEST_WAIT = 100;
/** Milliseconds from one cut to the next. */
const LONGEST_WAIT = 1_000;
/** Milliseconds after which a copy that did not end is not waited for any more. */
const COPY_PATIENCE = 30_000;
/** Cuts that wait to be compared. */
const MOST_WAITING = 16;
const LEAST_JOURNAL = 64 * 1024;
/** Services of a portion: about two milliseconds. */
const PORTION = 50;

export class ZoneHistory {
  readonly #zone: LiveZone;
  readonly #clock: Clock;
  readonly #changed: () => void;
  /** What the last state that was compared is made of; `undefined` until a copy went out. */
  #handed: HandedRecords | undefined;
  /** That state. */
  #current: StartOfAuthority | undefined;
  /** The last state that was cut. */
  #lastCut: StartOfAuthority | undefined;
  /** The copy that is kept while it goes out. */
  #copying: { readonly since: number } | undefined;
  readonly #touched = new Set<string>();
  #waiting: Cut[] = [];
  #isComparing = false;
  readonly #journal = new ZoneJournal();
  #timer: Timer | undefined;
  #cutAt = Number.NEGATIVE_INFINITY;

  constructor({ zone, clock, changed }: ZoneHistoryOptions) {
    this.#zone = zone;
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Whether changes are gathered: they have to be reported by {@link touch}. */
  get isFollowing(): boolean {
    return this.#handed !== undefined || this.#copying !== undefined;
  }

  /** Keys of services that there were when the zone was copied last. */
  knownKeys(): Iterable<string> {
    return this.#handed?.keys() ?? [];
  }

  /** Services that are no longer what they were. */
  touch(keys: Iterable<string>): void {
    if (this.isFollowing) for (const key of keys) this.#touched.add(key);
    // Until there is something to compare with, secondaries are told of each change.
    if (this.#handed === undefined) this.#changed();
    else this.#schedule();
  }

  /** All of the zone as it is now. */
  copy(): ZoneTransfer {
    const soa = this.#zone.seal();
    const server = this.#zone.server();
    const states = this.#zone.states();
    if (this.isFollowing) this.#cut(soa);
    return { soa, records: () => this.#records(soa, server, states) };
  }

  /** What changed since a state; `undefined` where that state is no longer recorded. */
  changes(serial: number): ZoneTransfer | undefined {
    const soa = this.#current;
    if (soa === undefined) return undefined;
    const current = soa.data.serial;
    const changesSince = (known: number) => this.#journal.since(known, current);
    if (!isAsNew(serial, current) && changesSince(serial) === undefined) return undefined;
    return { soa, records: () => [], changesSince };
  }

  stop(): void {
    this.#timer?.cancel();
    this.#forget();
  }

  /** They are kept while they go out, unless others are already. */
  *#records(
    soa: StartOfAuthority,
    server: readonly ResourceRecord[],
    states: readonly ServiceState[],
  ): Generator<ResourceRecord> {
    const isKept =
      this.#handed !== undefined ||
      (this.#copying?.since ?? Number.NEGATIVE_INFINITY) > this.#clock.now() - COPY_PATIENCE;
    // What changed before the first record is asked for was not gathered.
    if (isKept || this.#zone.serial() !== soa.data.serial) {
      yield* server;
      for (const state of states) yield* this.#zone.recordsOf(state);
      return;
    }
    const copying = { since: this.#clock.now() };
    this.#copying = copying;
    this.#waiting = [];
    this.#touched.clear();
    this.#lastCut = soa;
    const handed = new HandedRecords();
    handed.put(SERVER, server);
    yield* server;
    for (const state of states) {
      const records = this.#zone.recordsOf(state);
      handed.put(state.entry.key, records);
      yield* records;
    }
    if (this.#copying !== copying) return;
    this.#copying = undefined;
    this.#handed = handed;
    this.#current = soa;
    void this.#compare();
    if (this.#touched.size > 0) this.#schedule();
  }

  #schedule(): void {
    if (this.#timer !== undefined) return;
    const wait = Math.max(SHORTEST_WAIT, LONGEST_WAIT - (this.#clock.now() - this.#cutAt));
    this.#timer = this.#clock.after(wait, () => {
      this.#timer = undefined;
      if (this.isFollowing) this.#cut(this.#zone.seal());
    });
  }

  #cut(soa: StartOfAuthority): void {
    this.#cutAt = this.#clock.now();
    if (this.#lastCut?.data.serial === soa.data.serial) return;
    this.#lastCut = soa;
    const touched = Array.from(this.#touched, (key) => [key, this.#zone.state(key)] as const);
    this.#touched.clear();
    this.#waiting.push({ soa, server: this.#zone.server(), touched });
    if (this.#waiting.length > MOST_WAITING) this.#forget();
    else if (this.#handed !== undefined) void this.#compare();
  }

  /** Finds the differences of the cuts that wait, in portions. Never rejects. */
  async #compare(): Promise<void> {
    if (this.#isComparing) return;
    this.#isComparing = true;
    const handed = this.#handed;
    let isNews = false;
    try {
      for (;;) {
        const before = this.#current;
        const cut = this.#waiting.shift();
        if (cut === undefined || before === undefined || handed === undefined) break;
        const logs = { removed: new RecordLog(), added: new RecordLog() };
        await handed.replace(SERVER, cut.server, logs, nextTurn);
        for (const [index, [key, state]] of cut.touched.entries()) {
          if (index % PORTION === PORTION - 1) await nextTurn();
          await handed.replace(key, state === undefined ? [] : this.#zone.recordsOf(state), logs, nextTurn);
        }
        if (this.#handed !== handed) break;
        const { soa } = cut;
        const serials = { fromSerial: before.data.serial, toSerial: soa.data.serial };
        const limit = Math.max(LEAST_JOURNAL, handed.size / 2);
        this.#journal.add({ before, after: soa, ...serials, ...logs }, limit);
        this.#current = soa;
        isNews = true;
      }
    } catch {
      // The next client gets the whole zone.
      this.#forget();
    } finally {
      this.#isComparing = false;
    }
    if (isNews) this.#changed();
  }

  #forget(): void {
    this.#handed = undefined;
    this.#current = undefined;
    this.#lastCut = undefined;
    this.#copying = undefined;
    this.#waiting = [];
    this.#touched.clear();
    this.#journal.clear();
  }
}
