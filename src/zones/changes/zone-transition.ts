/**
 * A change of any size in a zone that is served, without a second zone.
 *
 * All that the change brings is put into the tables of the zone itself, in portions, where nobody sees it: names that it touches get a second
 * list of RRsets, which shares what stays the same, and their nodes lead to a small table with both (`PendingNodes`). Order of denials is
 * made beside the one in force. Then a single step lets look-ups choose the other list. What they do not see any more is put away in portions;
 * transfers that began before go on with it first. Nothing has to be undone in a zone that is served when a change turns out not to fit: what
 * it brought is put away in its place.
 *
 * A side table of names that are complete in it would need answers to be joined from two places, and an order in which nodes change in
 * place one after the other needs each look-up, also one for a wildcard or the neighbour in the chain of NSEC, to know which state a node is
 * in. Here a look-up compares a number that it has at hand already, and pays for more only where a node is about to change.
 */
import { Side, type SideNumber } from "../data/pending-nodes.ts";
import type { PlainRecord } from "../data/record-log.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { addRecord, removeRecord } from "./zone-changes.ts";

/** Records of a portion, and octets of their data: some tenths of a millisecond. */
const PORTION = 100;
const PORTION_OCTETS = 32 * 1024;

type Pause = () => Promise<void>;

export class ZoneTransition {
  readonly #zone: Zone;
  readonly #portion: number;
  #nsec: Int32Array | undefined;
  #nsec3: Int32Array | undefined;

  /**
   * @param zone one that {@link Zone.mayBegin}; nobody else may change it until the promise of {@link finish} or {@link undo} resolves
   * @param portion records between two pauses
   */
  constructor(zone: Zone, portion: number = PORTION) {
    this.#zone = zone;
    this.#portion = portion;
    zone.begin();
  }

  /**
   * Prepares what a change brings, behind what others brought before.
   * @throws ZoneChangeError where it does not fit; only {@link undo} may follow
   */
  async take({ soa, removed, added }: ZoneChange, pause: Pause): Promise<void> {
    await this.#each(removed, removeRecord, pause);
    await this.#each(added, addRecord, pause);
    this.after(() => addRecord(this.#zone, soa));
  }

  /** Looks at what the zone will be. */
  after<T>(look: () => T): T {
    this.#zone.see(Side.AFTER);
    try {
      return look();
    } finally {
      this.#zone.see(Side.BEFORE);
    }
  }

  /** Prepares what denials need. */
  async order(pause: Pause): Promise<void> {
    this.#nsec = await this.#zone.nsec.prepare(pause);
    this.#nsec3 = await this.#zone.nsec3.prepare(pause);
  }

  /** Puts the change into force. To be followed by {@link finish}. */
  switchOver(): void {
    this.#zone.switchOver(this.#nsec, this.#nsec3);
  }

  /** Puts away what was before; later by itself, where transfers still read it. */
  async finish(pause: Pause): Promise<void> {
    const zone = this.#zone;
    if (zone.formerTransfers === 0) await this.#settle(Side.AFTER, pause);
    else zone.onLastLeft(() => void this.#settle(Side.AFTER, pause));
  }

  /** Puts away what was prepared: the zone stays as it is. */
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
