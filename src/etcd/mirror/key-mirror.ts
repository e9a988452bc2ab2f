/**
 * A local copy of some ranges of etcd's keys: listed once, then watched. A failure loses nothing; only after a compaction is
 * everything listed again, and applied as a difference.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { MAX_RUN_OCTETS } from "../../lib/collections/octet-arena.ts";
import type { Logger } from "../../lib/logging/log.ts";
import { GrpcStatus } from "../../lib/net/grpc-message.ts";
import { BackOff } from "../../lib/time/back-off.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { EtcdClient, KeyRange, RunningWatch } from "../client/etcd-client.ts";
import { EtcdError } from "../client/etcd-error.ts";
import type { KeyValue, WatchResponse } from "../client/etcd-pb.ts";
import { KeyTree } from "./key-tree.ts";
import { LeaseTable } from "./lease-table.ts";

export interface KeyMirrorOptions {
  readonly client: EtcdClient;
  readonly ranges: readonly KeyRange[];
  /** Whether a key in the ranges is wanted. */
  wants(key: string): boolean;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: { fraction(): number };
  /** Bytes that the keys may take; beyond, nothing is kept. */
  readonly maxOctets: number;
}

export interface MirrorListener {
  /** Called for each value that etcd sends, also while listing. */
  seen(key: string, value: Buffer): void;
  /** The value of a key changed, or it was deleted. Not called before the first listing is complete. */
  changed(key: string): void;
  /** A listing is complete, the first or a later one. */
  listed(): void;
  /** etcd became unreachable. */
  lost(): void;
}

/** Keys of one answer while listing, small enough to be applied without blocking the event loop. */
const PAGE = 500;
const FIRST_WAIT = 200;
const LONGEST_WAIT = 10_000;

export type MirrorState = "listing" | "watching" | "away" | "too large";

export class KeyMirror {
  readonly tree = new KeyTree();
  readonly leases: LeaseTable;
  readonly #options: KeyMirrorOptions;
  readonly #listeners = new Set<MirrorListener>();
  #state: MirrorState = "listing";
  #isSynced = false;
  /** For each range, the revision up to which the tree is complete. Empty if everything has to be listed. */
  #revisions: bigint[] = [];
  #since: number;
  readonly #backOff: BackOff;
  #lastError = "";
  #watch: RunningWatch | undefined;
  #pause: { readonly timer: Timer; readonly end: () => void } | undefined;
  #isStopped = false;

  constructor(options: KeyMirrorOptions) {
    this.#options = options;
    this.#backOff = new BackOff({ first: FIRST_WAIT, longest: LONGEST_WAIT, random: options.random });
    this.#since = options.clock.now();
    this.leases = new LeaseTable({ clock: options.clock, ask: (id) => options.client.lease(id) });
  }

  get state(): MirrorState {
    return this.#state;
  }

  /** Whether all keys are known; stays true from the first listing on. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  get revision(): bigint {
    return this.#revisions.reduce((newest, each) => (each > newest ? each : newest), 0n);
  }

  /** The current error, empty if all is well. */
  get lastError(): string {
    return this.#lastError;
  }

  /** Milliseconds since the state changed. */
  get age(): number {
    return this.#options.clock.now() - this.#since;
  }

  /** Reports all further events. The returned function removes the listener. */
  listen(listener: MirrorListener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Runs until {@link stop}. */
  start(): void {
    this.leases.start();
    void this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.leases.stop();
    this.#watch?.close();
    this.#pause?.timer.cancel();
    this.#pause?.end();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        if (this.#revisions.length === 0) await this.#list();
        if (this.#state === "too large") return;
        await this.#follow();
      } catch (error) {
        if (this.#isStopped) return;
        await this.#failed(error);
      }
    }
  }

  async #failed(error: unknown): Promise<void> {
    if (!(error instanceof Error)) throw error;
    if (error instanceof EtcdError && error.isCompacted) {
      this.#revisions = [];
      return;
    }
    const isNews = this.#state !== "away";
    if (isNews) this.#options.log.warning(`etcd is unreachable: ${error.message}`);
    this.#enter("away", error.message);
    if (isNews) for (const listener of this.#listeners) listener.lost();
    await this.#wait(this.#backOff.next());
  }

  async #list(): Promise<void> {
    const { client, ranges } = this.#options;
    this.tree.beginListing();
    let revision = 0n;
    for (const { from, to } of ranges) {
      let next: Uint8Array | undefined = from;
      while (next !== undefined && !this.#isStopped) {
        const page = await client.range({
          from: next,
          ...(to !== undefined && { to }),
          limit: PAGE,
          revision,
        });
        // All pages show the state of the first one.
        if (revision === 0n) revision = page.header?.revision ?? 0n;
        for (const entry of page.kvs) this.#set(entry);
        if (this.#isTooLarge()) return;
        const last = page.kvs.at(-1);
        next = page.more && last !== undefined ? Buffer.concat([last.key, new Uint8Array(1)]) : undefined;
      }
    }
    if (this.#isStopped) return;
    const portions = this.tree.sweep(2_000, (key, lease) => {
      this.leases.release(lease);
      if (this.#isSynced) this.#changed(key);
    });
    while (portions.next().done !== true) await nextTurn();
    this.#revisions = ranges.map(() => revision);
    this.#isSynced = true;
    for (const listener of this.#listeners) listener.listed();
  }

  #follow(): Promise<void> {
    const { client, ranges } = this.#options;
    return new Promise((resolve, reject) => {
      const watched = ranges.map((range, index) => ({ range, revision: this.#revisions[index] ?? 0n }));
      const begin = client.watch(watched, {
        reply: (reply) => {
          const error = this.#take(reply);
          if (error === undefined) return;
          reject(error);
          this.#watch?.close();
        },
        ended: (error) => {
          this.#watch = undefined;
          if (this.#isStopped) resolve();
          else reject(error);
        },
      });
      begin.then((watch) => {
        this.#watch = watch;
        if (this.#isStopped) watch.close();
      }, reject);
    });
  }

  /** @returns why the watch cannot continue */
  #take(reply: WatchResponse): Error | undefined {
    const { endpoint } = this.#options.client;
    // gRPC's OUT_OF_RANGE means that the watch cannot continue from here, and everything has to be listed.
    if (reply.compactRevision > 0n)
      return new EtcdError(GrpcStatus.OUT_OF_RANGE, "the changes in between are compacted", endpoint);
    if (reply.canceled)
      return new EtcdError(GrpcStatus.CANCELLED, reply.cancelReason || "the watch was ended", endpoint);
    const range = Number(reply.watchId) - 1;
    const revision = reply.header?.revision ?? 0n;
    if (reply.created) {
      if (revision < (this.#revisions[range] ?? 0n))
        return new EtcdError(GrpcStatus.OUT_OF_RANGE, "etcd went back in time", endpoint);
      this.#enter("watching", "");
      // Its revision is etcd's current one: the changes before it are still to come.
      return undefined;
    }
    for (const { deleted, kv } of reply.events) {
      if (kv === undefined) continue;
      if (deleted) this.#delete(kv.key);
      else this.#set(kv);
    }
    // After a failure, a change that arrived in part is requested again as a whole.
    const last = reply.events.at(-1)?.kv?.modRevision;
    this.#revisions[range] = last === undefined ? revision : reply.fragment ? last - 1n : last;
    return this.#isTooLarge() ? new Error("too large") : undefined;
  }

  #set({ key, value, lease }: KeyValue): void {
    const options = this.#options;
    const text = latin1(key);
    if (!options.wants(text)) return;
    if (value.length >= MAX_RUN_OCTETS || key.length >= MAX_KEY_OCTETS) {
      options.log.warning(`key ${text.slice(0, 200)} is skipped: its value has ${value.length} octets`);
      this.#delete(key);
      return;
    }
    const octets = Buffer.from(value.buffer, value.byteOffset, value.length);
    for (const listener of this.#listeners) listener.seen(text, octets);
    const known = this.#isSynced ? this.tree.get(text) : undefined;
    const isSame = known?.value.equals(value) ?? false;
    const former = this.tree.leaseOf(key);
    this.tree.set(key, value, this.leases.use(lease));
    this.leases.release(former);
    if (this.#isSynced && !isSame) this.#changed(text);
  }

  #delete(key: Uint8Array): void {
    const lease = this.tree.leaseOf(key);
    if (!this.tree.delete(key)) return;
    this.leases.release(lease);
    this.#changed(latin1(key));
  }

  #changed(key: string): void {
    for (const listener of this.#listeners) listener.changed(key);
  }

  #isTooLarge(): boolean {
    const { maxOctets, log } = this.#options;
    if (this.tree.octets <= maxOctets) return false;
    if (this.#state !== "too large") {
      log.warning(
        `the keys need more than ${maxOctets / 1024 / 1024} MiB: every query now goes to etcd; serve fewer zones, or another path`,
      );
    }
    this.#enter("too large", "");
    this.#isSynced = false;
    this.#isStopped = true;
    this.leases.stop();
    return true;
  }

  #enter(state: MirrorState, error: string): void {
    this.#lastError = error;
    if (state === "watching") {
      if (this.#state === "away") this.#options.log.info("etcd is reachable again");
      this.#backOff.reset();
    }
    if (this.#state === state) return;
    this.#state = state;
    this.#since = this.#options.clock.now();
  }

  #wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.after(milliseconds, resolve);
      this.#pause = { timer, end: resolve };
    });
  }
}

function latin1(octets: Uint8Array): string {
  return Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("latin1");
}

/** No name has a longer key: 255 octets, each up to four characters, below any sensible path. */
const MAX_KEY_OCTETS = 4096;
