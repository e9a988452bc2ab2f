/** The sources of keys for answers. */
import { type EtcdClient, type KeyRange, rangeBelow } from "../../etcd/client/etcd-client.ts";
import type { KeyMirror } from "../../etcd/mirror/key-mirror.ts";
import type { Entry } from "../../etcd/mirror/key-tree.ts";
import type { Found, KeyEntry, KeySource } from "./items.ts";

/** Bound for keys below one name in an answer: far more than fit into a message. */
const MAX_KEYS = 4_096;

/** Keys mirrored here, available at once. */
export class MirroredKeys implements KeySource<Found> {
  readonly #mirror: KeyMirror;

  constructor(mirror: KeyMirror) {
    this.#mirror = mirror;
  }

  below(key: string): KeyEntry[] {
    return this.#mirror.tree.below(key, MAX_KEYS).map((entry) => this.#read(entry));
  }

  exactly(key: string): KeyEntry[] {
    const entry = this.#mirror.tree.get(key);
    return entry === undefined ? [] : [this.#read(entry)];
  }

  #read({ key, value, lease }: Entry): KeyEntry {
    return { key, value, leaseLeft: lease < 0 ? Number.POSITIVE_INFINITY : this.#leaseLeft(lease) };
  }

  /** A lease that could not be looked up yet counts as valid. */
  #leaseLeft(lease: number): number {
    const left = this.#mirror.leases.remaining(lease);
    return left === Number.POSITIVE_INFINITY ? 0 : left;
  }
}

/** Keys read from etcd for each query: one or two round trips per name. */
export class RemoteKeys implements KeySource<Found> {
  readonly #client: EtcdClient;

  constructor(client: EtcdClient) {
    this.#client = client;
  }

  below(key: string): Promise<KeyEntry[]> {
    return this.#read(rangeBelow(key));
  }

  exactly(key: string): Promise<KeyEntry[]> {
    return this.#read({ from: Buffer.from(key, "latin1") });
  }

  async #read(range: KeyRange): Promise<KeyEntry[]> {
    const { kvs: entries } = await this.#client.range({ ...range, limit: MAX_KEYS, revision: 0n });
    const ids = new Set(entries.map(({ lease }) => lease).filter((lease) => lease !== 0n));
    const left = new Map<bigint, number>();
    await Promise.all(
      [...ids].map(async (id) =>
        left.set(id, Math.max(0, Number((await this.#client.lease(id)).TTL)) * 1000),
      ),
    );
    return entries.map(({ key, value, lease }) => ({
      key: Buffer.from(key).toString("latin1"),
      value: Buffer.from(value),
      leaseLeft: left.get(lease) ?? Number.POSITIVE_INFINITY,
    }));
  }
}
