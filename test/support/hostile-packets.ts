/** Packets without end that no honest client sends: random octets, and queries damaged at random. */
import { type Edns, EdnsOptionCode } from "../../src/dns/edns.ts";
import { encodeMessage, type Message, makeQuery } from "../../src/dns/message.ts";
import { Name } from "../../src/dns/name.ts";
import { Flag, Opcode } from "../../src/dns/numbers.ts";
import { parseRecord } from "../../src/dns/resource-record.ts";
import { parseRecordType } from "../../src/dns/type-names.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Below the MTU of a common network, and above what any seed has. */
const MAX_OCTETS = 1400;

/** Messages that the server understands, to be damaged. */
export function seedMessages(names: readonly string[]): Buffer[] {
  const edns = (options: Edns["options"], dnssecOk = false): Edns => ({
    udpSize: 1232,
    version: 0,
    dnssecOk,
    options,
  });
  const option = (code: number, octets: number) => ({ code, data: new Uint8Array(octets) });
  const variants: Partial<Message>[] = [
    {},
    { flags: Flag.RD | Flag.AD | Flag.CD },
    { edns: edns([], true) },
    { edns: edns([option(EdnsOptionCode.COOKIE, 8), option(EdnsOptionCode.CLIENT_SUBNET, 7)]) },
    { edns: edns([option(EdnsOptionCode.NSID, 0), option(EdnsOptionCode.PADDING, 300)]) },
    { opcode: Opcode.NOTIFY },
    { opcode: Opcode.UPDATE },
    { authority: [parseRecord("example. 1 IN SOA ns.example. root.example. 1 2 3 4 5")] },
    {
      additional: [parseRecord("a.example. 1 IN SRV 1 2 3 b.example."), parseRecord("b.example. 1 IN TXT x")],
    },
    { answer: [parseRecord("example. 1 IN NAPTR 1 2 u s !a!b! .")], edns: edns([]) },
  ];
  const types = [
    "A",
    "AAAA",
    "SRV",
    "PTR",
    "TXT",
    "SOA",
    "NS",
    "ANY",
    "AXFR",
    "IXFR",
    "DS",
    "HTTPS",
    "TYPE65280",
  ];
  return names.flatMap((name) =>
    types.flatMap((type) => {
      const query = makeQuery({ name: Name.parse(name), type: parseRecordType(type) ?? 1 });
      return variants.map((variant) => Buffer.from(encodeMessage({ ...query, ...variant })));
    }),
  );
}

/** The next packet: one in ten of random octets, one in ten with a sound header, the others damaged seeds. */
export function hostilePacket(random: SeededRandom, seeds: readonly Buffer[]): Buffer {
  const kind = random.below(10);
  if (kind === 0) return randomOctets(random, random.below(400));
  if (kind === 1) {
    const packet = randomOctets(random, 12 + random.below(200));
    packet.writeUInt16BE(0x0100, 2);
    packet.writeUIntBE(0x000100000000, 4, 6);
    packet.writeUInt16BE(random.below(3), 10);
    return packet;
  }
  let packet = Buffer.from(random.pick(seeds));
  packet.writeUInt16BE(random.below(0x10000), 0);
  for (let damages = random.pick([1, 1, 1, 2, 3, 4]); damages > 0; damages--)
    packet = damage(packet, random, seeds);
  return packet;
}

function damage(
  packet: Buffer<ArrayBuffer>,
  random: SeededRandom,
  seeds: readonly Buffer[],
): Buffer<ArrayBuffer> {
  if (packet.length < 14) return packet;
  const at = random.below(packet.length - 1);
  switch (random.below(9)) {
    case 0:
      packet[at] = (packet[at] ?? 0) ^ (1 << random.below(8));
      return packet;
    case 1:
      packet[at] = random.below(256);
      return packet;
    case 2:
      return packet.subarray(0, at);
    case 3: {
      const other = random.pick(seeds);
      return Buffer.concat([packet.subarray(0, at), other.subarray(random.below(other.length))]);
    }
    case 4:
      return Buffer.concat([packet.subarray(0, at), packet.subarray(random.below(at + 1))]).subarray(
        0,
        MAX_OCTETS,
      );
    case 5:
      packet.writeUInt16BE(0xc000 | random.below(packet.length), at);
      return packet;
    case 6:
      packet.writeUInt16BE(random.pick([0, 1, 2, 3, 0xff, 0x7fff, 0xffff]), 4 + 2 * random.below(4));
      return packet;
    case 7:
      return Buffer.concat([packet, randomOctets(random, random.below(64))]).subarray(0, MAX_OCTETS);
    default:
      // Upper and lower case, which most names consist of: a question of its own for each spelling.
      for (let n = 12; n < packet.length; n++) {
        const octet = packet[n] ?? 0;
        if (octet >= 0x61 && octet <= 0x7a && random.below(2) === 0) packet[n] = octet - 0x20;
      }
      return packet;
  }
}

function randomOctets(random: SeededRandom, length: number): Buffer<ArrayBuffer> {
  const octets = Buffer.allocUnsafe(length);
  random.fill(octets);
  return octets;
}
