/** A zone from a file that takes updates: one batch after the other, each on the disk before it is acknowledged. */
import { setImmediate as nextImmediate } from "node:timers/promises";
import type { Message } from "../../dns/message.ts";
import { Rcode } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Logger } from "../../lib/log.ts";
import type { ServedZone } from "../served-zone.ts";
import type { Zone } from "../zone.ts";
import type { ZoneService } from "../zone-service.ts";
import { dataKey, EditedZone, type ZoneStep } from "./edited-zone.ts";
import { UpdateJournal } from "./update-journal.ts";
import { applyUpdate, checkPrerequisites, checkUpdate } from "./update-message.ts";

/** Updates that wait; whoever comes then is told to come again (SERVFAIL). */
const MOST_WAITING = 1_000;
/** Updates that are written to the disk together. */
const BATCH = 100;
/** Octets from which on a journal is written anew, and how many times what it would have then. */
const LEAST_TO_COMPACT = 1024 * 1024;

interface WaitingUpdate {
  readonly message: Message;
  readonly settle: (rcode: number) => void;
}

export class DynamicZone {
  readonly journal: UpdateJournal;
  readonly #served: ServedZone;
  readonly #service: ZoneService;
  readonly #log: Logger;
  readonly #waiting: WaitingUpdate[] = [];
  #working: Promise<unknown> = Promise.resolve();
  #isWorking = false;
  /** Serial of the zone file. */
  #base = 0;
  /** Of the configuration before this one: it writes the journal until this one is in force. */
  #predecessor: DynamicZone | undefined;
  #successor: DynamicZone | undefined;
  #onlyLooks = false;
  /** Octets that the steps since the last compaction began with. */
  #compactAt = LEAST_TO_COMPACT;

  constructor(served: ServedZone, path: string, service: ZoneService, log: Logger) {
    this.#served = served;
    this.#service = service;
    this.#log = log;
    this.journal = new UpdateJournal(path);
  }

  /**
   * Puts into force what a file says, with the updates that are based on it. No update happens meanwhile.
   * @throws JournalError, or the error of the file system
   */
  takeOver(zone: Zone): Promise<void> {
    return this.#alone(async () => {
      const contents = await (this.#mayWrite ? this.journal.read() : this.journal.peek());
      this.#base = zone.serial;
      let current = zone;
      if (contents !== undefined && contents.base === zone.serial) {
        const edited = new EditedZone(zone);
        for (const [index, step] of contents.steps.entries()) {
          if (index % 1_000 === 999) await nextImmediate();
          edited.repeat(step);
        }
        await zone.order(nextTurn);
        current = edited.zone;
      } else if (contents !== undefined && this.#mayWrite) {
        await this.journal.retire();
        this.#log.warning(
          `The file of zone "${this.#served.spelled}" has serial ${zone.serial}, and its updates are based on ${contents.base}: they are kept in "${this.journal.path}.old" and no longer served`,
        );
      }
      await this.#service.replace(this.#served, current);
    });
  }

  get #mayWrite(): boolean {
    return this.#predecessor === undefined && !this.#onlyLooks;
  }

  /** The journal belongs to somebody else. */
  onlyLook(): void {
    this.#onlyLooks = true;
  }

  /** To be called before {@link takeOver}, in a reload. */
  inherit(predecessor: DynamicZone): void {
    this.#predecessor = predecessor;
  }

  /** The configuration is in force: the journal is this one's from now on. Never rejects. */
  async adopt(): Promise<void> {
    const predecessor = this.#predecessor;
    if (predecessor === undefined) return;
    await this.#alone(async () => {
      try {
        const { zone, base } = await predecessor.#handOver(this);
        this.#predecessor = undefined;
        const contents = await this.journal.read();
        if (base === this.#base) {
          if (zone !== undefined && zone.serial !== this.#served.zone?.serial)
            await this.#service.replace(this.#served, zone);
        } else if (contents !== undefined && contents.base !== this.#base) await this.journal.retire();
      } catch (error) {
        this.#log.error(
          `Updates of zone "${this.#served.spelled}" cannot be taken: ${error instanceof Error ? error.message : String(error)}`,
        );
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

  /** @returns the rcode of the reply; with NOERROR the update is on the disk and in force */
  update(message: Message): Promise<number> {
    if (this.#successor !== undefined) return this.#successor.update(message);
    if (this.#waiting.length >= MOST_WAITING) return Promise.resolve(Rcode.SERVFAIL);
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#waiting.push({ message, settle: resolve });
    if (!this.#isWorking) {
      this.#isWorking = true;
      void this.#alone(() => this.#work());
    }
    return promise;
  }

  async stop(): Promise<void> {
    await this.#alone(() => this.journal.close());
  }

  /** One thing after the other. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#working.then(work);
    this.#working = result.catch(() => undefined);
    return result;
  }

  async #work(): Promise<void> {
    try {
      while (this.#waiting.length > 0) await this.#batch(this.#waiting.splice(0, BATCH));
    } finally {
      this.#isWorking = false;
    }
  }

  /** Never rejects. */
  async #batch(batch: readonly WaitingUpdate[]): Promise<void> {
    const successor = this.#successor;
    if (successor !== undefined) {
      for (const { message, settle } of batch) void successor.update(message).then(settle);
      return;
    }
    const verdicts: number[] = batch.map(() => Rcode.SERVFAIL);
    try {
      const { zone } = this.#served;
      if (zone !== undefined) await this.#apply(zone, batch, verdicts);
    } catch (error) {
      verdicts.fill(Rcode.SERVFAIL);
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.error(`Updates of zone "${this.#served.spelled}" failed: ${reason}`);
    }
    for (const [index, { settle }] of batch.entries()) settle(verdicts[index] ?? Rcode.SERVFAIL);
  }

  async #apply(zone: Zone, batch: readonly WaitingUpdate[], verdicts: number[]): Promise<void> {
    const edited = new EditedZone(zone.clone());
    const former = zone.serial;
    for (const [index, { message }] of batch.entries()) {
      let rcode = checkPrerequisites(message, edited);
      if (rcode === Rcode.NOERROR) rcode = checkUpdate(message, edited.apex);
      if (rcode === Rcode.NOERROR) applyUpdate(message, edited);
      verdicts[index] = rcode;
    }
    if (edited.steps.length === 0) return;
    edited.advanceSerial(former);
    await edited.zone.order(nextTurn);
    await this.journal.append(this.#base, edited.steps);
    await this.#service.replace(this.#served, edited.zone);
    if (this.journal.size > this.#compactAt) await this.#compact();
  }

  async #compact(): Promise<void> {
    const contents = await this.journal.read();
    if (contents === undefined) return;
    await this.journal.compact(this.#base, withoutDetours(contents.steps));
    this.#compactAt = Math.max(LEAST_TO_COMPACT, 2 * this.journal.size);
  }
}

/** Steps that lead to the same zone, without what came and went again, or went and came back. */
export function withoutDetours(steps: readonly ZoneStep[]): ZoneStep[] {
  const ends = new Map<string, { readonly first: "+" | "-"; readonly last: ZoneStep }>();
  let soa: ZoneStep | undefined;
  for (const step of steps) {
    const { sign, record } = step;
    if (record.type === RecordType.SOA) {
      if (sign === "+") soa = step;
      continue;
    }
    const key = `${record.name.toLowerCase()} ${record.type} ${record.ttl} ${dataKey(record)}`;
    const first = ends.get(key)?.first ?? sign;
    // The order is that of the last steps: a record goes before it comes with another TTL.
    ends.delete(key);
    ends.set(key, { first, last: step });
  }
  const left = Array.from(ends.values()).filter(({ first, last }) => first === last.sign);
  return [...left.map(({ last }) => last), ...(soa === undefined ? [] : [soa])];
}

async function nextTurn(): Promise<void> {
  await nextImmediate();
}
