/** Maintains the journal of a zone: compacts it when it is large or damaged, and logs lost updates. */

import type { Logger } from "../../lib/logging/log.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { compareZones } from "../changes/zone-journal.ts";
import type { Zone } from "../data/zone.ts";
import { soaRecord } from "../data/zone-transfer.ts";
import type { ServedZone } from "../serving/served-zone.ts";
import type { ZoneStep } from "./edited-zone.ts";
import { withoutDetours } from "./steps.ts";
import type { Journal, ReadUpdates } from "./update-journal.ts";
import { allOf } from "./whole-zone.ts";

/** Bytes from which on a journal is compacted, and how much larger than its compacted form it must be. */
const LEAST_TO_COMPACT = 1024 * 1024;
/** Places named in the log. */
const MOST_PLACES = 5;

export interface UpkeepOptions {
  readonly served: ServedZone;
  /** Whether the journal has the whole zone, whose file was only the start: from then on it replaces the file. */
  readonly isWhole?: boolean;
  readonly log: Logger;
  /** The zone as its file has it. */
  readFile(): Promise<Zone | undefined>;
  /** Called with the number of damaged places in the journal. */
  onDamage(places: number): void;
}

export class JournalUpkeep {
  readonly #journal: Journal;
  readonly #options: UpkeepOptions;
  readonly #pause: () => Promise<void>;
  /** Bytes from which on the journal is compacted again. */
  #compactAt = LEAST_TO_COMPACT;

  /** @param pause called between portions */
  constructor(journal: Journal, options: UpkeepOptions, pause: () => Promise<void>) {
    this.#journal = journal;
    this.#options = options;
    this.#pause = pause;
  }

  tellDamage({ damage, torn, keptAside }: ReadUpdates): void {
    const { path } = this.#journal;
    const { spelled } = this.#options.served;
    if (torn > 0)
      this.#options.log.warning(
        `Journal "${path}" of zone "${spelled}" ended in ${torn} bytes of an update that was never acknowledged: they are dropped`,
      );
    if (damage.length === 0) return;
    this.#options.onDamage(damage.length);
    const places = damage.slice(0, MOST_PLACES).map(({ at, length }) => `${length} bytes at ${at}`);
    if (damage.length > MOST_PLACES) places.push(`${damage.length - MOST_PLACES} more places`);
    const kept = keptAside === undefined ? "" : `; the file is kept as "${keptAside}"`;
    this.#options.log.error(
      `Journal "${path}" of zone "${spelled}" is damaged: ${places.join(", ")}. Updates in these places cannot be read${kept}`,
    );
  }

  /**
   * Compacts a journal that has become large. Never rejects: the updates are on disk and in force, whether it becomes shorter or
   * not.
   */
  async compact(base: number): Promise<void> {
    if (this.#journal.size <= this.#compactAt) return;
    try {
      const contents = await this.#journal.read();
      if (contents === undefined) return;
      this.tellDamage(contents);
      if (contents.damage.length > 0) await this.restore(base);
      else await this.#journal.compact(base, await withoutDetours(contents.steps, this.#pause));
    } catch (error) {
      const reason = messageOf(error);
      this.#options.log.error(
        `Journal "${this.#journal.path}" of zone "${this.#options.served.spelled}" cannot be compacted: ${reason}`,
      );
    } finally {
      this.#compactAt = Math.max(LEAST_TO_COMPACT, 2 * this.#journal.size);
    }
  }

  /** The served zone has the data that the journal lost: everything that it has and the file lacks is written again. */
  async restore(base: number): Promise<void> {
    const { spelled, zone } = this.#options.served;
    if (this.#options.isWhole === true) {
      if (zone !== undefined) await this.#journal.compact(base, allOf(zone));
      return;
    }
    const file = await this.#options.readFile();
    if (zone === undefined || file?.serial !== base) return;
    const differences = await compareZones(file, zone, Number.POSITIVE_INFINITY, this.#pause);
    if (differences === undefined) return;
    const steps: ZoneStep[] = [];
    for (const record of differences.removed.records()) steps.push({ sign: "-", record });
    for (const record of differences.added.records()) steps.push({ sign: "+", record });
    await this.#journal.compact(base, [...steps, { sign: "+", record: soaRecord(zone) }]);
    this.#options.log.info(
      `Journal "${this.#journal.path}" of zone "${spelled}" is complete again: nothing is lost`,
    );
  }
}
