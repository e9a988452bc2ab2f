/** A zone from a file that accepts updates: one batch after the other, each written to disk before it is acknowledged. */

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Message } from "../../dns/message.ts";
import type { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import type { Logger } from "../../lib/logging/log.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { partOf } from "../changes/zone-part.ts";
import type { Zone } from "../data/zone.ts";
import type { ServedZone } from "../serving/served-zone.ts";
import type { ZoneService } from "../serving/zone-service.ts";
import { EditedZone, RecordTooLargeError, type ZoneStep } from "./edited-zone.ts";
import { isBasedOn, serialsLost, zoneOf } from "./journal-serials.ts";
import { JournalUpkeep, type UpkeepOptions } from "./journal-upkeep.ts";
import { changeOf } from "./steps.ts";
import { type Journal, JournalError, NoJournal, type ReadUpdates, UpdateJournal } from "./update-journal.ts";
import { applyUpdate, checkPrerequisites, checkUpdate } from "./update-message.ts";
import {
  hasBounds,
  hasRoom,
  mayChange,
  sizeAfter,
  sizeOfZone,
  type UpdatePolicy,
  type ZoneSize,
} from "./update-policy.ts";
import { allOf, zoneOfSteps } from "./whole-zone.ts";

/** Waiting updates; further ones get SERVFAIL and should be retried. */
const MOST_WAITING = 1_000;
/** Records of updates that are written to disk together. */
const BATCH_RECORDS = 300;
/** Steps of a journal that are replayed in one turn. */
const PORTION = 200;

/** Changes of the predecessor that are remembered while the file is read; with more, the whole zone is taken over at the end. */
const MOST_MISSED = 1_000;

/** The effect of a batch of updates on a zone. */
interface AppliedSteps {
  /** Serial before the steps. */
  readonly from: number;
  /** Serial of the file that they are based on. */
  readonly base: number;
  readonly steps: readonly ZoneStep[];
}

interface WaitingUpdate {
  readonly message: Message;
  readonly signer: Name;
  readonly settle: (rcode: number) => void;
}

export interface DynamicZoneOptions extends UpkeepOptions {
  /** Of the journal; `undefined` if updates are kept in memory only. */
  readonly path: string | undefined;
  readonly policy: UpdatePolicy;
  readonly service: ZoneService;
}

export class DynamicZone {
  readonly journal: Journal;
  readonly #served: ServedZone;
  readonly #service: ZoneService;
  readonly #log: Logger;
  readonly #waiting: WaitingUpdate[] = [];
  #working: Promise<unknown> = Promise.resolve();
  #isWorking = false;
  /** Serial of the zone file. */
  #base = 0;
  /** Of the previous configuration: it writes the journal until this one is in force. */
  #predecessor: DynamicZone | undefined;
  #successor: DynamicZone | undefined;
  /** Of the next configuration: it must also get the updates acknowledged before it is in force. */
  #heir: DynamicZone | undefined;
  /** Changes of the predecessor's zone while this one was being read. */
  #missed: AppliedSteps[] | undefined = [];
  #onlyLooks = false;
  readonly #upkeep: JournalUpkeep;
  /** Of the zone, if it has limits. */
  #size: (ZoneSize & { readonly zone: Zone; readonly serial: number }) | undefined;
  readonly #options: DynamicZoneOptions;

  constructor(options: DynamicZoneOptions) {
    const { served, service, log } = options;
    this.#options = options;
    this.#served = served;
    this.#service = service;
    this.#log = log;
    const { path, isWhole } = options;
    this.journal =
      path === undefined
        ? new NoJournal()
        : new UpdateJournal(path, nextTurn, isWhole === true ? 0o600 : 0o644);
    this.#upkeep = new JournalUpkeep(this.journal, options, nextTurn);
  }

  /**
   * Puts the content of a file into force, with the updates based on it. No update is applied until the promise settles.
   * @throws JournalError, or the error of the file system
   */
  takeOver(zone: Zone): Promise<void> {
    return this.#alone(async () => {
      const contents = await (this.#mayWrite ? this.journal.read() : this.journal.peek());
      const isServed = this.#served.zone !== undefined && this.#base === zone.serial;
      this.#base = zone.serial;
      if (this.#options.isWhole === true) return this.#takeOverWhole(zone, contents);
      let current = zone;
      let repaired: readonly ZoneStep[] = [];
      // A file that another process is writing to may be incomplete.
      if (contents !== undefined && this.#mayWrite) {
        this.#upkeep.tellDamage(contents);
        if (contents.damage.length > 0 && isServed) return this.#upkeep.restore(this.#base);
      }
      if (contents !== undefined && isBasedOn(contents, zone.serial)) {
        const edited = new EditedZone(zone);
        for (const [index, step] of contents.steps.entries()) {
          if (index % PORTION === PORTION - 1) await nextTurn();
          edited.repeat(step);
        }
        if (contents.damage.length > 0) repaired = edited.passSerials(serialsLost(contents.damage));
        await zone.order(nextTurn);
        current = edited.zone;
      } else if (contents !== undefined && contents.base === undefined) {
        this.#log.error(
          `Journal "${this.journal.path}" of zone "${this.#served.spelled}" does not say which file it belongs to, and does not follow serial ${zone.serial}: its updates are not served`,
        );
      } else if (contents !== undefined && this.#mayWrite) {
        await this.journal.retire();
        this.#log.warning(
          `The file of zone "${this.#served.spelled}" has serial ${zone.serial}, and its updates are based on ${contents.base}: they are kept in "${this.journal.path}.old" and no longer served`,
        );
      }
      if (this.#mayWrite && contents !== undefined && repaired.length > 0) {
        const steps = contents.base === undefined ? [...contents.steps, ...repaired] : repaired;
        await this.journal.append(this.#base, steps);
      }
      await this.#service.replace(this.#served, current);
      // More may arrive while one is applied.
      for (const applied of this.#missed ?? []) await this.#repeat(applied);
      this.#missed = undefined;
    });
  }

  /** The journal takes precedence over the file. A damaged one continues from the file with everything readable. */
  async #takeOverWhole(seed: Zone, contents: ReadUpdates | undefined): Promise<void> {
    let current = seed;
    if (contents !== undefined) {
      const other = zoneOf(contents);
      if (other?.equals(seed.apex) === false)
        throw new JournalError(`${this.journal.path} is the database of zone "${other}"`);
      if (this.#mayWrite) this.#upkeep.tellDamage(contents);
      const isDamaged = contents.damage.length > 0;
      this.#base = contents.base ?? seed.serial;
      current = await zoneOfSteps(isDamaged ? seed : undefined, seed.apex, contents.steps, nextTurn);
      if (isDamaged) new EditedZone(current).passSerials(serialsLost(contents.damage));
    }
    if (this.#mayWrite && (contents === undefined || contents.damage.length > 0))
      await this.journal.compact(this.#base, allOf(current));
    await this.#service.replace(this.#served, current);
    for (const applied of this.#missed ?? []) await this.#repeat(applied);
    this.#missed = undefined;
  }

  get #mayWrite(): boolean {
    return this.#predecessor === undefined && !this.#onlyLooks;
  }

  /** The journal belongs to another process. */
  onlyLook(): void {
    this.#onlyLooks = true;
  }

  /** Serial of the zone file that was last taken over. */
  get base(): number {
    return this.#base;
  }

  /** To be called before {@link takeOver}, in a reload. */
  inherit(predecessor: DynamicZone): void {
    this.#predecessor = predecessor;
    predecessor.#heir = this;
  }

  /**
   * Applies updates that the predecessor is about to acknowledge, so that no acknowledged update is missing when this configuration
   * comes into force. Never rejects.
   * @returns when they are in force on all data planes of this configuration so far
   */
  async #follow(applied: AppliedSteps): Promise<void> {
    if (this.#missed !== undefined) {
      if (this.#missed.length < MOST_MISSED) this.#missed.push(applied);
      return;
    }
    await this.#alone(() => this.#repeat(applied));
    await this.#service.copies?.taken();
  }

  /** Never rejects. */
  async #repeat({ from, base, steps }: AppliedSteps): Promise<void> {
    const { zone } = this.#served;
    // The journal already had the change, or the file is another one. {@link adopt} takes over everything missing here as a whole.
    if (zone === undefined || zone.serial !== from || base !== this.#base) return;
    try {
      const change = await changeOf(zone, steps, nextTurn);
      await this.#service.advance(this.#served, [change], Number.POSITIVE_INFINITY);
    } catch (error) {
      this.#log.warning(
        `Updates of zone "${this.#served.spelled}" are taken over later: ${messageOf(error)}`,
      );
    }
  }

  /** The configuration is in force: this zone owns the journal from now on. Never rejects. */
  async adopt(): Promise<void> {
    const predecessor = this.#predecessor;
    if (predecessor === undefined) return;
    await this.#alone(async () => {
      try {
        const { zone, base } = await predecessor.#handOver(this);
        this.#predecessor = undefined;
        const contents = await this.journal.read();
        if (contents !== undefined) this.#upkeep.tellDamage(contents);
        if (base === this.#base) {
          if (zone !== undefined && zone.serial !== this.#served.zone?.serial)
            await this.#service.replace(this.#served, zone);
          if (contents !== undefined && contents.damage.length > 0) await this.#upkeep.restore(this.#base);
        } else if (contents !== undefined && contents.base !== this.#base) await this.journal.retire();
      } catch (error) {
        this.#log.error(`Updates of zone "${this.#served.spelled}" cannot be accepted: ${messageOf(error)}`);
      }
    });
  }

  #handOver(successor: DynamicZone): Promise<{ readonly zone: Zone | undefined; readonly base: number }> {
    return this.#alone(async () => {
      await this.journal.close();
      this.#successor = successor;
      return { zone: this.#served.zone, base: this.#base };
    });
  }

  /** @returns the rcode of the reply; with NOERROR the update is on disk and in force on all data planes */
  update(message: Message, signer: Name): Promise<number> {
    if (this.#successor !== undefined) return this.#successor.update(message, signer);
    if (this.#waiting.length >= MOST_WAITING) return Promise.resolve(Rcode.SERVFAIL);
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#waiting.push({ message, signer, settle: resolve });
    if (!this.#isWorking) {
      this.#isWorking = true;
      void this.#alone(() => this.#work());
    }
    return promise;
  }

  async stop(): Promise<void> {
    // It never came into force.
    const predecessor = this.#predecessor;
    if (predecessor !== undefined && predecessor.#heir === this) predecessor.#heir = undefined;
    await this.#alone(() => this.journal.close());
  }

  /** Runs operations one after the other. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#working.then(work);
    this.#working = result.catch(() => undefined);
    return result;
  }

  async #work(): Promise<void> {
    try {
      while (this.#waiting.length > 0) await this.#batch(this.#waiting.splice(0, this.#batchLength()));
    } finally {
      this.#isWorking = false;
    }
  }

  /** At least one. */
  #batchLength(): number {
    let records = 0;
    for (const [index, { message }] of this.#waiting.entries()) {
      records += sizeOf(message);
      if (records > BATCH_RECORDS) return Math.max(1, index);
    }
    return this.#waiting.length;
  }

  /** Never rejects. */
  async #batch(batch: readonly WaitingUpdate[]): Promise<void> {
    const successor = this.#successor;
    if (successor !== undefined) {
      for (const { message, signer, settle } of batch) void successor.update(message, signer).then(settle);
      return;
    }
    const verdicts: number[] = batch.map(() => Rcode.SERVFAIL);
    let applied: AppliedSteps | undefined;
    try {
      const { zone } = this.#served;
      if (zone !== undefined) applied = await this.#apply(zone, batch, verdicts);
    } catch (error) {
      verdicts.fill(Rcode.SERVFAIL);
      const reason = messageOf(error);
      this.#log.error(`Updates of zone "${this.#served.spelled}" failed: ${reason}`);
    }
    const settle = (): void => {
      for (const [index, waiting] of batch.entries()) waiting.settle(verdicts[index] ?? Rcode.SERVFAIL);
    };
    // Not awaited here: the heir may be waiting for this zone to be handed over.
    if (applied !== undefined && this.#heir !== undefined) void this.#heir.#follow(applied).then(settle);
    else settle();
  }

  /** @returns `undefined` if nothing changed */
  async #apply(
    zone: Zone,
    batch: readonly WaitingUpdate[],
    verdicts: number[],
  ): Promise<AppliedSteps | undefined> {
    const { serial: from } = zone;
    const steps = await this.#steps(await partOf(zone, namesIn(batch), nextTurn), batch, verdicts);
    if (steps.length === 0) return undefined;
    await this.journal.append(this.#base, steps);
    const change = await changeOf(zone, steps, nextTurn);
    const size = this.#size;
    await this.#service.advance(this.#served, [change], Number.POSITIVE_INFINITY);
    const { zone: changed } = this.#served;
    if (size !== undefined && changed !== undefined)
      this.#size = { zone: changed, serial: changed.serial, ...sizeAfter(size, steps) };
    // A client may query the change as soon as it is acknowledged, and any data plane may answer.
    await this.#service.copies?.taken();
    await this.#upkeep.compact(this.#base);
    return { from, base: this.#base, steps };
  }

  /**
   * The effect of updates on a zone.
   * @param part a separate part of the zone: until everything is on disk, the changes are invisible
   */
  async #steps(
    part: Zone,
    batch: readonly WaitingUpdate[],
    verdicts: number[],
  ): Promise<readonly ZoneStep[]> {
    const edited = new EditedZone(part);
    const former = part.serial;
    const { policy } = this.#options;
    for (const [index, { message, signer }] of batch.entries()) {
      let rcode = checkPrerequisites(message, edited, policy.unsupported);
      if (rcode === Rcode.NOERROR && !mayChange(signer, message, policy)) {
        verdicts[index] = Rcode.REFUSED;
        continue;
      }
      if (rcode === Rcode.NOERROR) rcode = checkUpdate(message, edited.apex, policy.unsupported);
      if (rcode === Rcode.REFUSED)
        this.#log.warning(
          `Update of zone "${this.#served.spelled}" refused: RRSIG, NSEC, NSEC3 and NSEC3PARAM records are made by signing only`,
        );
      if (rcode === Rcode.NOERROR) rcode = await this.#carryOut(message, edited);
      verdicts[index] = rcode;
    }
    if (edited.steps.length > 0) edited.advanceSerial(former);
    return edited.steps;
  }

  async #carryOut(message: Message, edited: EditedZone): Promise<number> {
    const before = edited.steps.length;
    try {
      await applyUpdate(message, edited, nextTurn);
      if (this.#hasRoom(edited.steps)) return Rcode.NOERROR;
      edited.undo(before);
      this.#log.warning(`Update of zone "${this.#served.spelled}" refused: the zone would exceed its limits`);
      return Rcode.REFUSED;
    } catch (error) {
      if (!(error instanceof RecordTooLargeError)) throw error;
      edited.undo(before);
      this.#log.warning(`Update of zone "${this.#served.spelled}" refused: ${error.message}`);
      return Rcode.REFUSED;
    }
  }

  #hasRoom(steps: readonly ZoneStep[]): boolean {
    const { policy } = this.#options;
    const { zone } = this.#served;
    if (!hasBounds(policy) || zone === undefined) return true;
    if (this.#size?.zone !== zone || this.#size.serial !== zone.serial)
      this.#size = { zone, serial: zone.serial, ...sizeOfZone(zone) };
    return hasRoom(sizeAfter(this.#size, steps), policy);
  }
}

function sizeOf({ answer, authority }: Message): number {
  return answer.length + authority.length;
}

/** The names that updates query or change. */
function* namesIn(batch: readonly WaitingUpdate[]): Generator<Name> {
  for (const { message } of batch) {
    for (const { name } of message.answer) yield name;
    for (const { name } of message.authority) yield name;
  }
}
