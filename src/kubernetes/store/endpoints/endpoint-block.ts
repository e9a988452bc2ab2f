/**
 * An endpoint set as octets, for {@link EndpointTable}:
 *
 *     2  octets of the name          of each group:
 *     n  name                        1  octets of an address (4, 16)
 *     1  groups                      2  endpoints
 *                                    2  of which are ready
 *                                    2  octets of the ports, of the labels, and of the zones (2 each)
 *                                    n  ports
 *                                    n  addresses
 *                                    n  labels: octets (1), label; none where no endpoint has one
 *                                    n  zones, likewise
 *
 * Numbers have their most significant octet first. Equal sets have equal octets.
 */
import { readU16, writeU16 } from "../../../dns/octets.ts";
import type { EndpointGroup, EndpointSet, Port } from "../../objects/objects.ts";
import { MAX_BLOCK_OCTETS } from "../tables/block-table.ts";
import { MAX_SHORT_TEXT, portOctets, readPorts, writePorts, writeShortText } from "../tables/packed-ports.ts";
import { readText } from "../tables/short-text.ts";

const NAME = 2;
const GROUP_HEAD = 11;
/** Their number is one octet. */
const MOST_GROUPS = 254;
/** Stands in the place of the number of groups where a set is no block: the stamp of {@link LargeObjects} follows. */
const LARGE = 255;

/** Writes sets, one after the other into the same octets. */
export class EndpointBlockWriter {
  readonly #octets: Buffer = Buffer.allocUnsafe(MAX_BLOCK_OCTETS);
  /** What was written last: a set is compared, and then stored. */
  #last: EndpointSet | undefined;
  #length = 0;

  /** @returns octets that hold until the next call; `undefined` for a set that is too large for a block */
  write(set: EndpointSet): Uint8Array | undefined {
    if (set === this.#last) return this.#octets.subarray(0, this.#length);
    this.#last = undefined;
    if (!fits(set)) return undefined;
    let at = this.#writeName(set.name);
    const octets = this.#octets;
    octets[at++] = set.groups.length;
    for (const group of set.groups) at = this.#writeGroup(group, at);
    this.#last = set;
    this.#length = at;
    return octets.subarray(0, at);
  }

  /** The name, and in the place of the groups a stamp. */
  writeLarge(name: string, stamp: number): Uint8Array {
    this.#last = undefined;
    const at = this.#writeName(name);
    this.#octets[at] = LARGE;
    return this.#octets.subarray(0, this.#octets.writeInt32LE(stamp, at + 1));
  }

  #writeName(name: string): number {
    const octets = this.#octets;
    const length = octets.write(name, NAME, "utf8");
    writeU16(octets, 0, length);
    return NAME + length;
  }

  #writeGroup(group: EndpointGroup, start: number): number {
    const octets = this.#octets;
    octets[start] = group.addressLength;
    writeU16(octets, start + 1, group.count);
    writeU16(octets, start + 3, group.readyCount);
    const ports = start + GROUP_HEAD;
    const at = writePorts(octets, group.ports, ports);
    writeU16(octets, start + 5, at - ports);
    octets.set(group.addresses, at);
    const labels = at + group.addresses.length;
    const zones = this.#writeTexts(group.labels, labels);
    writeU16(octets, start + 7, zones - labels);
    const end = this.#writeTexts(group.zones, zones);
    writeU16(octets, start + 9, end - zones);
    return end;
  }

  #writeTexts(texts: readonly string[] | undefined, start: number): number {
    let at = start;
    for (const text of texts ?? []) at = writeShortText(this.#octets, text, at);
    return at;
  }
}

/** Whether a set can be a block. All but those of thousands of endpoints can. */
function fits({ name, groups }: EndpointSet): boolean {
  if (groups.length > MOST_GROUPS) return false;
  let octets = NAME + Buffer.byteLength(name) + 1;
  for (const group of groups) {
    octets += GROUP_HEAD + group.addresses.length;
    const length = portOctets(group.ports);
    if (length === undefined) return false;
    octets += length;
    for (const texts of [group.labels, group.zones]) {
      if (texts === undefined) continue;
      // What stands for none.
      if (texts.length !== group.count || texts.length === 0) return false;
      for (const text of texts) {
        const length = Buffer.byteLength(text);
        if (length > MAX_SHORT_TEXT) return false;
        octets += 1 + length;
      }
    }
    if (octets > MAX_BLOCK_OCTETS) return false;
  }
  return true;
}

/** The name of the set that a block holds. */
export function readBlockName(octets: Buffer, start: number): string {
  const at = start + NAME;
  return readText(octets, at, at + readU16(octets, start));
}

/** The stamp of a block that stands for a large set; 0 for any other. */
export function readBlockStamp(octets: Buffer, start: number): number {
  const at = start + NAME + readU16(octets, start);
  return octets[at] === LARGE ? octets.readInt32LE(at + 1) : 0;
}

/** The groups of a block, which are read where they stand: they hold as long as the block does. */
export function readBlockGroups(octets: Buffer, start: number): PackedGroup[] {
  let at = start + NAME + readU16(octets, start);
  const groups: PackedGroup[] = [];
  for (let count = octets[at++] ?? 0; count > 0; count--) {
    const group = new PackedGroup(octets, at);
    groups.push(group);
    at = group.end;
  }
  return groups;
}

export class PackedGroup implements EndpointGroup {
  readonly addressLength: 4 | 16;
  readonly count: number;
  readonly readyCount: number;
  /** Where the addresses begin among the octets. */
  readonly addressesAt: number;
  /** Where the group ends. */
  readonly end: number;
  readonly #octets: Buffer;
  readonly #portsAt: number;
  readonly #labelsAt: number;
  readonly #zonesAt: number;
  #addresses: Uint8Array | undefined;
  #labels: readonly string[] | undefined;
  #zones: readonly string[] | undefined;
  #ports: readonly Port[] | undefined;

  constructor(octets: Buffer, start: number) {
    this.addressLength = octets[start] === 4 ? 4 : 16;
    this.count = readU16(octets, start + 1);
    this.readyCount = readU16(octets, start + 3);
    this.#octets = octets;
    this.#portsAt = start + GROUP_HEAD;
    this.addressesAt = this.#portsAt + readU16(octets, start + 5);
    this.#labelsAt = this.addressesAt + this.count * this.addressLength;
    this.#zonesAt = this.#labelsAt + readU16(octets, start + 7);
    this.end = this.#zonesAt + readU16(octets, start + 9);
  }

  get addresses(): Uint8Array {
    if (this.#addresses === undefined) {
      const { buffer, byteOffset } = this.#octets;
      this.#addresses = new Uint8Array(
        buffer,
        byteOffset + this.addressesAt,
        this.count * this.addressLength,
      );
    }
    return this.#addresses;
  }

  get labels(): readonly string[] | undefined {
    if (this.#labelsAt === this.#zonesAt) return undefined;
    this.#labels ??= this.#readTexts(this.#labelsAt);
    return this.#labels;
  }

  get zones(): readonly string[] | undefined {
    if (this.#zonesAt === this.end) return undefined;
    this.#zones ??= this.#readTexts(this.#zonesAt);
    return this.#zones;
  }

  get ports(): readonly Port[] {
    this.#ports ??= readPorts(this.#octets, this.#portsAt, this.addressesAt);
    return this.#ports;
  }

  /** The same as `labels[index]`, without making the others. */
  labelAt(index: number): string {
    if (this.#labels !== undefined) return this.#labels[index] ?? "";
    if (this.#labelsAt === this.#zonesAt) return "";
    const octets = this.#octets;
    let at = this.#labelsAt;
    for (let before = 0; before < index; before++) at += 1 + (octets[at] ?? 0);
    return readText(octets, at + 1, at + 1 + (octets[at] ?? 0));
  }

  #readTexts(start: number): string[] {
    const octets = this.#octets;
    const texts = new Array<string>(this.count).fill("");
    let at = start;
    for (let index = 0; index < this.count; index++) {
      const end = at + 1 + (octets[at] ?? 0);
      texts[index] = readText(octets, at + 1, end);
      at = end;
    }
    return texts;
  }
}

/** The label of an endpoint, empty for one that is named after its address. */
export function labelAt(group: EndpointGroup, index: number): string {
  return group instanceof PackedGroup ? group.labelAt(index) : (group.labels?.[index] ?? "");
}
