/**
 * Hosts of Istio's ServiceEntries as octets: a mesh has tens of thousands of them, and each would be an object with lists in it. One takes
 * some 100 octets in a few buffers, which the garbage collector passes over.
 */
import { hashName, Name } from "../../../dns/name.ts";
import { OctetArena } from "../../../lib/collections/octet-arena.ts";
import { GrowingIndex, NO_ENTRY, withRoom } from "../../../lib/collections/slab/growing-index.ts";
import type { Clock } from "../../../lib/time/clock.ts";
import type { Identity, MeshHost, ServiceEntry } from "../../objects/objects.ts";
import { AutomaticAddresses } from "../services/automatic-addresses.ts";
import type { Relist, WatchedStore } from "../store.ts";

/** A host of an entry, as long as it is there. */
export type HostSlot = number;

/** Told of hosts that came, went or have other addresses. */
export type HostListener = (host: MeshHost) => void;

/** Hosts of all entries. What comes on top is left out, and counted in {@link ServiceEntryTable.leftOut}. */
const MAX_SLOTS = 1_000_000;

const WILDCARD = 1;
const AUTOMATIC = 2;
/** In front of the octets of a block: length of the name, of the identity, and how many addresses there are of each family. */
const HEAD = 7;

export class ServiceEntryTable implements WatchedStore<"serviceentries"> {
  readonly #clock: Clock;
  readonly #arena = new OctetArena();
  readonly #byHost = new GrowingIndex();
  readonly #byEntry = new GrowingIndex();
  readonly #automatic = new AutomaticAddresses();
  readonly #listeners = new Set<HostListener>();
  readonly #synced = Promise.withResolvers<void>();
  /** Of each slot: its block, or {@link NO_ENTRY}. */
  #blocks: Int32Array = new Int32Array(0);
  #lengths: Uint16Array = new Uint16Array(0);
  #flags: Uint8Array = new Uint8Array(0);
  /** When the entry was made, in seconds since 1970. */
  #created: Int32Array = new Int32Array(0);
  /** The latest listing that named it. */
  #listings: Int32Array = new Int32Array(0);
  readonly #free: HostSlot[] = [];
  #end = 0;
  #entries = 0;
  #hosts = 0;
  #leftOut = 0;
  #listing = 0;
  #heardAt: number | undefined;
  #isSynced = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get entries(): number {
    return this.#entries;
  }

  get hosts(): number {
    return this.#hosts;
  }

  /** Hosts for which there was no room. */
  get leftOut(): number {
    return this.#leftOut;
  }

  /** Octets that all of it takes. */
  get octets(): number {
    const columns = [this.#blocks, this.#lengths, this.#flags, this.#created, this.#listings];
    const own = columns.reduce((sum, { byteLength }) => sum + byteLength, 0);
    return own + this.#arena.reservedOctets + this.#byHost.octets + this.#byEntry.octets;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  whenSynced(): Promise<void> {
    return this.#synced.promise;
  }

  /** Milliseconds since the source was heard of; undefined before the first listing. */
  get age(): number | undefined {
    return this.#isSynced && this.#heardAt !== undefined ? this.#clock.now() - this.#heardAt : undefined;
  }

  onChange(listener: HostListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  put(_kind: "serviceentries", entry: ServiceEntry): void {
    const identity = identityOctets(entry);
    const before = this.#slotsOf(identity);
    const blocks = entry.hosts.map((host) => blockOf(host, identity));
    const isSame =
      before.length === blocks.length &&
      before.every(
        (slot, index) =>
          this.#created[slot] === (entry.created | 0) &&
          this.#flags[slot] === flagsOf(entry.hosts[index]) &&
          Buffer.compare(this.#view(slot), blocks[index] ?? NO_OCTETS) === 0,
      );
    if (isSame) {
      for (const slot of before) this.#listings[slot] = this.#listing;
      return;
    }
    const gone = this.#remove(before);
    const size = this.#hosts;
    for (const [index, host] of entry.hosts.entries())
      this.#add(host, blocks[index] ?? NO_OCTETS, entry.created);
    if (this.#hosts > size) this.#entries++;
    this.#changed([...gone, ...entry.hosts]);
  }

  delete(_kind: "serviceentries", identity: Identity): void {
    this.#changed(this.#remove(this.#slotsOf(identityOctets(identity))));
  }

  relist(kind: "serviceentries"): Relist<ServiceEntry> {
    const listing = ++this.#listing;
    const complete = function* (table: ServiceEntryTable): Generator<undefined> {
      for (let slot = 0; slot < table.#end; slot++) {
        if (table.#blocks[slot] !== NO_ENTRY && (table.#listings[slot] ?? 0) < listing)
          table.delete(kind, table.#identityOf(slot));
        if (slot % SLOTS_PER_TURN === SLOTS_PER_TURN - 1) yield;
      }
      table.confirm();
      table.markListed();
    };
    return {
      put: (entry) => this.put(kind, entry),
      commit: () => {
        for (const _ of complete(this));
      },
      commitInTurns: async () => {
        for (const _ of complete(this)) await new Promise((resolve) => setImmediate(resolve));
      },
    };
  }

  /** Puts these in the place of all that was there. */
  replaceAll(entries: Iterable<ServiceEntry>): void {
    const listing = this.relist("serviceentries");
    for (const entry of entries) listing.put(entry);
    listing.commit();
  }

  markListed(): void {
    this.#isSynced = true;
    this.#synced.resolve();
  }

  confirm(): void {
    this.#heardAt = this.#clock.now();
  }

  /** The host that answers for a name: the name itself, else the wildcard that is nearest to it. The newest entry counts. */
  find({ folded }: Name): HostSlot | undefined {
    let found = this.#newest(folded, 0, 0);
    for (let at = (folded[0] ?? 0) + 1; found === NO_ENTRY; at += (folded[at] ?? 0) + 1) {
      if (at >= folded.length - 1) return undefined;
      found = this.#newest(folded, at, WILDCARD);
    }
    return found;
  }

  /** Octets of its addresses of one family, side by side. */
  addresses(slot: HostSlot, length: 4 | 16): Uint8Array {
    if (this.#flags[slot] === AUTOMATIC)
      return this.#automatic.of(slot, length, () => this.#automaticHosts());
    const block = this.#view(slot);
    const start = HEAD + (block[0] ?? 0) + block.readUInt16BE(1);
    const middle = start + 4 * block.readUInt16BE(3);
    return length === 4 ? block.subarray(start, middle) : block.subarray(middle);
  }

  /** `namespace/name` of its entry. */
  entryOf(slot: HostSlot): string {
    const { namespace, name } = this.#identityOf(slot);
    return `${namespace}/${name}`;
  }

  #newest(wire: Uint8Array, start: number, wildcard: number): HostSlot {
    let best = NO_ENTRY;
    const index = this.#byHost;
    const hash = hashName(wire, start, wire.length) ^ wildcard;
    for (let slot = index.first(hash); slot !== NO_ENTRY; slot = index.after(slot)) {
      if (((this.#flags[slot] ?? 0) & WILDCARD) !== wildcard || !this.#isAt(slot, wire, start)) continue;
      if (best === NO_ENTRY || this.#compare(slot, best) > 0) best = slot;
    }
    return best;
  }

  #isAt(slot: HostSlot, wire: Uint8Array, start: number): boolean {
    const address = this.#blocks[slot] ?? 0;
    const buffer = this.#arena.bufferOf(address);
    const offset = this.#arena.offsetOf(address);
    const length = wire.length - start;
    if (buffer[offset] !== length) return false;
    for (let at = 0; at < length; at++) if (buffer[offset + HEAD + at] !== wire[start + at]) return false;
    return true;
  }

  /** Later entries are larger; of the same second those whose names come later. */
  #compare(one: HostSlot, other: HostSlot): number {
    const seconds = ((this.#created[one] ?? 0) >>> 0) - ((this.#created[other] ?? 0) >>> 0);
    return seconds !== 0 ? seconds : Buffer.compare(this.#identityView(one), this.#identityView(other));
  }

  #slotsOf(identity: Buffer): HostSlot[] {
    const found: HostSlot[] = [];
    const index = this.#byEntry;
    const hash = hashName(identity, 0, identity.length);
    for (let slot = index.first(hash); slot !== NO_ENTRY; slot = index.after(slot))
      if (this.#identityView(slot).equals(identity)) found.push(slot);
    return found;
  }

  #add(host: MeshHost, block: Buffer, created: number): void {
    if (this.#hosts >= MAX_SLOTS) {
      this.#leftOut++;
      return;
    }
    const slot = this.#free.pop() ?? this.#extend();
    this.#blocks[slot] = this.#arena.store(block);
    this.#lengths[slot] = block.length;
    this.#flags[slot] = flagsOf(host);
    this.#created[slot] = created | 0;
    this.#listings[slot] = this.#listing;
    const { folded } = host.name;
    this.#byHost.add(slot, hashName(folded, 0, folded.length) ^ (host.isWildcard ? WILDCARD : 0));
    const identity = this.#identityView(slot);
    this.#byEntry.add(slot, hashName(identity, 0, identity.length));
    this.#hosts++;
  }

  #extend(): HostSlot {
    const slot = this.#end++;
    this.#blocks = withRoom(this.#blocks, slot, NO_ENTRY);
    this.#lengths = withRoom(this.#lengths, slot);
    this.#flags = withRoom(this.#flags, slot);
    this.#created = withRoom(this.#created, slot);
    this.#listings = withRoom(this.#listings, slot);
    return slot;
  }

  #remove(slots: readonly HostSlot[]): MeshHost[] {
    const gone = slots.map((slot) => this.#host(slot));
    for (const slot of slots) {
      this.#byHost.remove(slot);
      this.#byEntry.remove(slot);
      this.#arena.release(this.#blocks[slot] ?? 0, this.#lengths[slot] ?? 0);
      this.#blocks[slot] = NO_ENTRY;
      this.#free.push(slot);
      this.#hosts--;
    }
    if (slots.length > 0) this.#entries--;
    return gone;
  }

  #changed(hosts: readonly MeshHost[]): void {
    if (hosts.some(({ isAutomatic }) => isAutomatic)) this.#automatic.outdated();
    for (const listener of this.#listeners) for (const host of hosts) listener(host);
  }

  #host(slot: HostSlot): MeshHost {
    const block = this.#view(slot);
    const flags = this.#flags[slot] ?? 0;
    return {
      name: Name.fromCheckedWire(Uint8Array.from(block.subarray(HEAD, HEAD + (block[0] ?? 0)))),
      isWildcard: (flags & WILDCARD) !== 0,
      addresses: [],
      isAutomatic: (flags & AUTOMATIC) !== 0,
    };
  }

  /** Hosts that are to be given addresses, the oldest first, with what their addresses are made from. */
  *#automaticHosts(): Generator<readonly [slot: HostSlot, key: string]> {
    const slots: HostSlot[] = [];
    for (let slot = 0; slot < this.#end; slot++)
      if (this.#blocks[slot] !== NO_ENTRY && this.#flags[slot] === AUTOMATIC) slots.push(slot);
    slots.sort((one, other) => this.#compare(one, other));
    for (const slot of slots) {
      const { name } = this.#host(slot);
      yield [slot, `${this.#identityOf(slot).namespace}/${name.toString().replace(/\.$/, "")}`];
    }
  }

  #view(slot: HostSlot): Buffer {
    return this.#arena.view(this.#blocks[slot] ?? 0, this.#lengths[slot] ?? 0);
  }

  #identityView(slot: HostSlot): Buffer {
    const block = this.#view(slot);
    const start = HEAD + (block[0] ?? 0);
    return block.subarray(start, start + block.readUInt16BE(1));
  }

  #identityOf(slot: HostSlot): Identity {
    const [namespace = "", name = ""] = this.#identityView(slot).toString().split("/");
    return { namespace, name };
  }
}

const SLOTS_PER_TURN = 1_000;
const NO_OCTETS: Buffer = Buffer.alloc(0);

function identityOctets({ namespace, name }: Identity): Buffer {
  return Buffer.from(`${namespace}/${name}`);
}

function flagsOf(host: MeshHost | undefined): number {
  return (host?.isWildcard === true ? WILDCARD : 0) | (host?.isAutomatic === true ? AUTOMATIC : 0);
}

function blockOf({ name, addresses }: MeshHost, identity: Buffer): Buffer {
  const four = addresses.filter(({ length }) => length === 4);
  const six = addresses.filter(({ length }) => length === 16);
  const head = Buffer.alloc(HEAD);
  head[0] = name.folded.length;
  head.writeUInt16BE(identity.length, 1);
  head.writeUInt16BE(four.length, 3);
  head.writeUInt16BE(six.length, 5);
  return Buffer.concat([head, name.folded, identity, ...four, ...six]);
}
