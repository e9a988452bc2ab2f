/**
 * A service as octets, for {@link ServiceTable}. Its names stand in its entry.
 *
 *     1  type, 128 more if addresses are published that are not ready
 *     2  octets of the cluster addresses, of the external name, and of the external addresses (2 each)
 *     n  cluster addresses: octets (1), address
 *     n  external name
 *     n  external addresses: octets (1), text
 *     n  ports
 *
 * Numbers have their least octet first. Equal services have equal octets.
 */
import type { Port, Service, ServiceType } from "../objects/objects.ts";
import { MAX_BLOCK_OCTETS } from "./block-table.ts";
import { MAX_SHORT_TEXT, portOctets, readPorts, writePorts, writeShortText } from "./packed-ports.ts";
import { readText } from "./short-text.ts";

const HEAD = 7;
const PUBLISHES = 0x80;
const TYPES: readonly ServiceType[] = ["clusterIP", "headless", "externalName"];

/** Writes services, one after the other into the same octets. */
export class ServiceBlockWriter {
  readonly #octets: Buffer = Buffer.allocUnsafe(MAX_BLOCK_OCTETS);

  /** @returns octets that hold until the next call; `undefined` for a service that is too large for a block */
  write(service: Service): Uint8Array | undefined {
    if (!fits(service)) return undefined;
    const octets = this.#octets;
    const publishes = service.publishNotReadyAddresses ? PUBLISHES : 0;
    octets.writeUInt8(TYPES.indexOf(service.type) | publishes, 0);
    let at = HEAD;
    for (const address of service.clusterAddresses) {
      octets.writeUInt8(address.length, at);
      octets.set(address, at + 1);
      at += 1 + address.length;
    }
    octets.writeUInt16LE(at - HEAD, 1);
    const name = at;
    at += octets.write(service.externalName, at, "utf8");
    octets.writeUInt16LE(at - name, 3);
    const external = at;
    for (const text of service.externalAddresses) at = writeShortText(octets, text, at);
    octets.writeUInt16LE(at - external, 5);
    return octets.subarray(0, writePorts(octets, service.ports, at));
  }
}

/** Whether a service can be a block. All that any API hands out can. */
function fits({ clusterAddresses, externalName, externalAddresses, ports }: Service): boolean {
  let octets = HEAD + Buffer.byteLength(externalName);
  for (const { length } of clusterAddresses) octets += 1 + length;
  for (const text of externalAddresses) {
    const length = Buffer.byteLength(text);
    if (length > MAX_SHORT_TEXT) return false;
    octets += 1 + length;
  }
  const length = portOctets(ports);
  return length !== undefined && octets + length <= MAX_BLOCK_OCTETS;
}

/** A service that is there: to be read at once, as it holds until the service changes. */
export class StoredService implements Service {
  readonly namespace: string;
  readonly name: string;
  readonly type: ServiceType;
  readonly publishNotReadyAddresses: boolean;
  readonly #octets: Buffer;
  readonly #start: number;
  readonly #end: number;
  #clusterAddresses: readonly Uint8Array[] | undefined;
  #ports: readonly Port[] | undefined;

  /** @param start where the block begins, and `end` where it ends */
  constructor(namespace: string, name: string, octets: Buffer, start: number, end: number) {
    this.namespace = namespace;
    this.name = name;
    const head = octets[start] ?? 0;
    this.type = TYPES[head & ~PUBLISHES] ?? "clusterIP";
    this.publishNotReadyAddresses = (head & PUBLISHES) !== 0;
    this.#octets = octets;
    this.#start = start;
    this.#end = end;
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
  return start + HEAD + octets.readUInt16LE(start + 1);
}

function externalAddressesAt(octets: Buffer, start: number): number {
  return externalNameAt(octets, start) + octets.readUInt16LE(start + 3);
}

function portsAt(octets: Buffer, start: number): number {
  return externalAddressesAt(octets, start) + octets.readUInt16LE(start + 5);
}

function readAddresses(octets: Buffer, start: number, end: number): readonly Uint8Array[] {
  const { buffer, byteOffset } = octets;
  const addresses: Uint8Array[] = [];
  for (let at = start; at < end; ) {
    const length = octets[at] ?? 0;
    addresses.push(new Uint8Array(buffer, byteOffset + at + 1, length));
    at += 1 + length;
  }
  return addresses;
}
