/**
 * Changes a served zone by any amount, without a second zone.
 * All new data are put into the tables of the zone itself, in portions and invisibly: changed names get a second list of RRsets,
 * which shares what stays the same, and their nodes refer to a small table with both lists (`PendingNodes`). The new order of
 * denials is computed beside the current one. Then a single step makes look-ups choose the other list. The old data are freed in
 * portions; transfers that began before the step still read them first. If a change turns out not to fit, the new data are freed
 * instead, and the served zone needs no repair.
 * Alternatives were worse: with a side table of complete names, answers would be joined from two places. With nodes that change in
 * place one after the other, each look-up (also for a wildcard, or for a neighbour in the NSEC chain) would have to know the state
 * of each node. Here a look-up compares a number that it has already read, and pays for more only where a node is about to change.
 */
import { Side, type SideNumber } from "../data/pending-nodes.ts";
import type { PlainRecord } from "../data/record-log.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { addRecord, removeRecord } from "./zone-changes.ts";

/** Records between two pauses, and bytes of their data. */
const PORTION = 100;
const PORTION_OCTETS = 32 * 1024;

type Pause = () => Promise<void>;

export class ZoneTransition {
  readonly #zone: Zone;
  readonly #portion: number;
  #nsec: Int32Array | undefined;
  #nsec3: Int32Array | undefined;

  /**
   * @param zone for which {@link Zone.mayBegin} is true; the caller must not change it until the promise of {@link finish} or
   * {@link undo} resolves
   * @param portion records between two pauses
   */
  constructor(zone: Zone, portion: number = PORTION) {
    this.#zone = zone;
    this.#portion = portion;
    zone.begin();
  }

  /**
   * Prepares a change, on top of the ones prepared before.
   * @throws ZoneChangeError if it does not fit; only {@link undo} may follow
   */
  async take({ soa, removed, added }: ZoneChange, pause: Pause): Promise<void> {
    await this.#each(removed, removeRecord, pause);
    await this.#each(added, addRecord, pause);
    this.after(() => addRecord(this.#zone, soa));
  }

  /** Evaluates `look` on the future state of the zone. */
  after<T>(look: () => T): T {
    this.#zone.see(Side.AFTER);
    try {
      return look();
    } finally {
      this.#zone.see(Side.BEFORE);
    }
  }

  /** Prepares the order of denials. */
  async order(pause: Pause): Promise<void> {
    this.#nsec = await this.#zone.nsec.prepare(pause);
    this.#nsec3 = await this.#zone.nsec3.prepare(pause);
  }

  /** Puts the change into force. {@link finish} must follow. */
  switchOver(): void {
    this.#zone.switchOver(this.#nsec, this.#nsec3);
  }

  /** Frees the old data; if transfers still read them, after their end. */
  async finish(pause: Pause): Promise<void> {
    const zone = this.#zone;
    if (zone.formerTransfers === 0) await this.#settle(Side.AFTER, pause);
    else zone.onLastLeft(() => void this.#settle(Side.AFTER, pause));
  }

  /** Frees the prepared data: the zone stays as it is. */
  undo(pause: Pause): Promise<void> {
    return this.#settle(Side.BEFORE, pause);
  }

  async #each(
    records: Iterable<PlainRecord>,
    act: (zone: Zone, record: PlainRecord) => void,
    pause: Pause,
  ): Promise<void> {
    const iterator = records[Symbol.iterator]();
    const portion = (): boolean => {
      let octets = 0;
      for (let count = 0; count < this.#portion && octets < PORTION_OCTETS; count++) {
        const { done, value } = iterator.next();
        if (done === true) return false;
        act(this.#zone, value);
        octets += value.rdata.length;
      }
      return true;
    };
    do await this.#zone.makeRoom(pause);
    while (this.after(portion));
  }

  async #settle(side: SideNumber, pause: Pause): Promise<void> {
    for (const records of [this.#zone.records, this.#zone.hashed]) {
      for (let from = 0; !records.settle(from, this.#portion, side); from += this.#portion) await pause();
    }
  }
}
