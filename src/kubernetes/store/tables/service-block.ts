/**
 * A service as octets, for {@link EntryTable}. Its name stands before it.
 *
 *     1  type, 128 more if addresses are published that are not ready
 *     2  octets of the cluster addresses, of the external name, and of the external addresses (2 each)
 *     n  cluster addresses: octets (1), address
 *     n  external name
 *     n  external addresses: octets (1), text
 *     n  ports
 *
 * Numbers have their most significant octet first. Equal services have equal octets.
 */
import { copyOctets, readU16, writeU16 } from "../../../dns/octets.ts";
import type { Port, Service, ServiceType } from "../../objects/objects.ts";
import { MAX_BLOCK_OCTETS } from "./block-table.ts";
import { MAX_SHORT_TEXT, portOctets, readPorts, writePorts, writeShortText } from "./packed-ports.ts";
import { readText } from "./short-text.ts";

/** The octets of the name that a block begins with. */
export const NAME_HEAD = 2;
const HEAD = 7;
const PUBLISHES = 0x80;
const TYPES: readonly ServiceType[] = ["clusterIP", "headless", "externalName"];

/** What the first octet of a service says. */
export function typeOf(flags: number): ServiceType {
  return TYPES[flags & ~PUBLISHES] ?? "clusterIP";
}

export function publishesOf(flags: number): boolean {
  return (flags & PUBLISHES) !== 0;
}

/** Writes services, one after the other into the same octets. */
export class ServiceBlockWriter {
  readonly #octets: Buffer = Buffer.allocUnsafe(MAX_BLOCK_OCTETS);

  /** @returns octets that hold until the next call; `undefined` for a service that is too large for a block */
  write(service: Service): Uint8Array | undefined {
    if (!fits(service)) return undefined;
    const octets = this.#octets;
    const start = this.#writeName(service.name);
    octets[start] = this.flagsOf(service);
    let at = start + HEAD;
    for (const address of service.clusterAddresses) {
      octets[at] = address.length;
      octets.set(address, at + 1);
      at += 1 + address.length;
    }
    writeU16(octets, start + 1, at - start - HEAD);
    const name = at;
    at += octets.write(service.externalName, at, "utf8");
    writeU16(octets, start + 3, at - name);
    const external = at;
    for (const text of service.externalAddresses) at = writeShortText(octets, text, at);
    writeU16(octets, start + 5, at - external);
    return octets.subarray(0, writePorts(octets, service.ports, at));
  }

  /** The name alone, as of a service that has not been seen. Octets that hold until the next call. */
  writeName(name: string): Uint8Array {
    return this.#octets.subarray(0, this.#writeName(name));
  }

  /** The name, and in the place of the service the stamp of {@link LargeObjects}. */
  writeLarge(name: string, stamp: number): Uint8Array {
    const at = this.#writeName(name);
    return this.#octets.subarray(0, this.#octets.writeInt32LE(stamp, at));
  }

  /** The first octet of a service. */
  flagsOf({ type, publishNotReadyAddresses }: Service): number {
    return TYPES.indexOf(type) | (publishNotReadyAddresses ? PUBLISHES : 0);
  }

  #writeName(name: string): number {
    const length = this.#octets.write(name, NAME_HEAD, "utf8");
    writeU16(this.#octets, 0, length);
    return NAME_HEAD + length;
  }
}

/** Whether a service can be a block. All that any API hands out can. */
function fits({ name, clusterAddresses, externalName, externalAddresses, ports }: Service): boolean {
  let octets = NAME_HEAD + Buffer.byteLength(name) + HEAD + Buffer.byteLength(externalName);
  for (const { length } of clusterAddresses) octets += 1 + length;
  for (const text of externalAddresses) {
    const length = Buffer.byteLength(text);
    if (length > MAX_SHORT_TEXT) return false;
    octets += 1 + length;
  }
  const length = portOctets(ports);
  return length !== undefined && octets + length <= MAX_BLOCK_OCTETS;
}

/** What bears the names of a service. */
export interface ServiceNames {
  readonly name: string;
  readonly namespaceName: string;
}

/** A service that is there: to be read at once, as it holds until the service changes. */
export class StoredService implements Service {
  readonly type: ServiceType;
  readonly publishNotReadyAddresses: boolean;
  readonly #names: ServiceNames;
  readonly #octets: Buffer;
  readonly #start: number;
  readonly #end: number;
  #clusterAddresses: readonly Uint8Array[] | undefined;
  #ports: readonly Port[] | undefined;

  /** @param start where the block begins, and `end` where it ends */
  constructor(names: ServiceNames, octets: Buffer, start: number, end: number) {
    const head = octets[start] ?? 0;
    this.type = typeOf(head);
    this.publishNotReadyAddresses = publishesOf(head);
    this.#names = names;
    this.#octets = octets;
    this.#start = start;
    this.#end = end;
  }

  get namespace(): string {
    return this.#names.namespaceName;
  }

  get name(): string {
    return this.#names.name;
  }

  get clusterAddresses(): readonly Uint8Array[] {
    this.#clusterAddresses ??= readAddresses(
      this.#octets,
      this.#start + HEAD,
      externalNameAt(this.#octets, this.#start),
    );
    return this.#clusterAddresses;
  }

  get externalName(): string {
    const at = externalNameAt(this.#octets, this.#start);
    return readText(this.#octets, at, externalAddressesAt(this.#octets, this.#start));
  }

  get externalAddresses(): readonly string[] {
    const octets = this.#octets;
    const end = portsAt(octets, this.#start);
    const texts: string[] = [];
    for (let at = externalAddressesAt(octets, this.#start); at < end; ) {
      const behind = at + 1 + (octets[at] ?? 0);
      texts.push(readText(octets, at + 1, behind));
      at = behind;
    }
    return texts;
  }

  get ports(): readonly Port[] {
    this.#ports ??= readPorts(this.#octets, portsAt(this.#octets, this.#start), this.#end);
    return this.#ports;
  }
}

/** The same service as an object of its own. */
export function copyService(service: Service): Service {
  return {
    namespace: service.namespace,
    name: service.name,
    type: service.type,
    // A view would be sent to another thread with all that stands beside it.
    clusterAddresses: service.clusterAddresses.map((octets) => octets.slice()),
    externalName: service.externalName,
    ports: service.ports,
    publishNotReadyAddresses: service.publishNotReadyAddresses,
    externalAddresses: service.externalAddresses,
  };
}

function externalNameAt(octets: Buffer, start: number): number {
  return start + HEAD + readU16(octets, start + 1);
}

function externalAddressesAt(octets: Buffer, start: number): number {
  return externalNameAt(octets, start) + readU16(octets, start + 3);
}

function portsAt(octets: Buffer, start: number): number {
  return externalAddressesAt(octets, start) + readU16(octets, start + 5);
}

function readAddresses(octets: Buffer, start: number, end: number): readonly Uint8Array[] {
  const addresses: Uint8Array[] = [];
  for (let at = start; at < end; ) {
    const length = octets[at] ?? 0;
    // To copy an address takes less than to make a view of it.
    addresses.push(copyOctets(octets, at + 1, at + 1 + length));
    at += 1 + length;
  }
  return addresses;
}
