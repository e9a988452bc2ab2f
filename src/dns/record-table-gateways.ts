/** Rows of the record table that name another host: IPSECKEY, AMTRELAY, HIP. */
import { ipv4, ipv6, spelledName, u8, u16 } from "./fields.ts";
import type { Name } from "./name.ts";
import { optionalBase64ToEnd } from "./octet-fields.ts";
import { fromBase64, fromHex, toBase64, toHex } from "./octets.ts";
import type { RdataScanner } from "./rdata-scanner.ts";
import { type RecordKind, recordWith } from "./record-kind.ts";
import { RecordType } from "./type-names.ts";
import type { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

/** The gateway of IPSECKEY and AMTRELAY records. */
export interface Gateway {
  /** 0 none, 1 IPv4, 2 IPv6, 3 name. */
  readonly gatewayType: number;
  /** An address as text, a name, or nothing. */
  readonly gateway: string | Name | undefined;
}

function readGateway(reader: WireReader, gatewayType: number): Gateway["gateway"] {
  if (gatewayType === 0) return undefined;
  if (gatewayType === 1) return ipv4.read(reader);
  if (gatewayType === 2) return ipv6.read(reader);
  if (gatewayType === 3) return reader.name();
  throw reader.bad(`unknown gateway type ${gatewayType}`);
}

function writeGateway(writer: WireWriter, { gatewayType, gateway }: Gateway): void {
  if (gatewayType === 0 && gateway === undefined) return;
  if (gatewayType === 1 && typeof gateway === "string") ipv4.write(writer, gateway);
  else if (gatewayType === 2 && typeof gateway === "string") ipv6.write(writer, gateway);
  else if (gatewayType === 3 && typeof gateway === "object") spelledName.write(writer, gateway);
  else throw new RangeError(`not a gateway of type ${gatewayType}: ${gateway}`);
}

function parseGateway(scanner: RdataScanner, gatewayType: number): Gateway["gateway"] {
  if (gatewayType === 1) return ipv4.parse(scanner);
  if (gatewayType === 2) return ipv6.parse(scanner);
  if (gatewayType === 3) return scanner.domainName("a gateway name");
  if (gatewayType !== 0) throw scanner.fail(`unknown gateway type ${gatewayType}`);
  if (scanner.word("a gateway") !== ".") throw scanner.fail('without gateway its place is "."');
  return undefined;
}

/** RFC 4025. */
export const ipsecKey: RecordKind<
  { precedence: number; algorithm: number; publicKey: Uint8Array } & Gateway
> = recordWith(
  "IPSECKEY",
  RecordType.IPSECKEY,
  ["precedence", "gatewayType", "algorithm", "gateway", "publicKey"],
  {
    read(reader) {
      const precedence = reader.u8();
      const gatewayType = reader.u8();
      const algorithm = reader.u8();
      const gateway = readGateway(reader, gatewayType);
      return { precedence, gatewayType, algorithm, gateway, publicKey: reader.rest() };
    },
    write(writer, data) {
      for (const octet of [data.precedence, data.gatewayType, data.algorithm]) u8.write(writer, octet);
      writeGateway(writer, data);
      writer.octets(data.publicKey);
    },
    print: (data) =>
      [data.precedence, data.gatewayType, data.algorithm, data.gateway ?? ".", toBase64(data.publicKey)]
        .join(" ")
        .trimEnd(),
    parse(scanner) {
      const precedence = u8.parse(scanner);
      const gatewayType = u8.parse(scanner);
      const algorithm = u8.parse(scanner);
      const gateway = parseGateway(scanner, gatewayType);
      return { precedence, gatewayType, algorithm, gateway, publicKey: optionalBase64ToEnd.parse(scanner) };
    },
  },
);

/** RFC 8777. */
export const amtRelay: RecordKind<{ precedence: number; discoveryOptional: boolean } & Gateway> = recordWith(
  "AMTRELAY",
  RecordType.AMTRELAY,
  ["precedence", "discoveryOptional", "gatewayType", "gateway"],
  {
    read(reader) {
      const precedence = reader.u8();
      const octet = reader.u8();
      const gatewayType = octet & 0x7f;
      const gateway = readGateway(reader, gatewayType);
      return { precedence, discoveryOptional: octet >= 0x80, gatewayType, gateway };
    },
    write(writer, data) {
      u8.write(writer, data.precedence);
      writer.u8((data.discoveryOptional ? 0x80 : 0) | data.gatewayType);
      writeGateway(writer, data);
    },
    print: (data) =>
      [data.precedence, data.discoveryOptional ? 1 : 0, data.gatewayType, data.gateway ?? "."].join(" "),
    parse(scanner) {
      const precedence = u8.parse(scanner);
      const discoveryOptional = scanner.integer("the discovery bit", 1) === 1;
      const gatewayType = scanner.integer("a relay type", 127);
      return { precedence, discoveryOptional, gatewayType, gateway: parseGateway(scanner, gatewayType) };
    },
  },
);

/** RFC 8005 section 5: the two lengths come first on the wire and are absent in text. */
export const hip: RecordKind<{
  algorithm: number;
  hit: Uint8Array;
  publicKey: Uint8Array;
  servers: readonly Name[];
}> = recordWith("HIP", RecordType.HIP, ["algorithm", "hit", "publicKey", "servers"], {
  read(reader) {
    const hitLength = reader.u8();
    const algorithm = reader.u8();
    const keyLength = reader.u16();
    if (hitLength === 0 || keyLength === 0) throw reader.bad("host identity without tag or key");
    const hit = reader.octets(hitLength);
    const publicKey = reader.octets(keyLength);
    const servers: Name[] = [];
    // Uncompressed names only: with pointers, two octets each would make names of 255.
    while (reader.remaining > 0) servers.push(reader.name(false));
    return { algorithm, hit, publicKey, servers };
  },
  write(writer, { algorithm, hit, publicKey, servers }) {
    u8.write(writer, hit.length);
    u8.write(writer, algorithm);
    u16.write(writer, publicKey.length);
    writer.octets(hit);
    writer.octets(publicKey);
    for (const server of servers) spelledName.write(writer, server);
  },
  print: (data) =>
    [data.algorithm, toHex(data.hit).toUpperCase(), toBase64(data.publicKey), ...data.servers].join(" "),
  parse(scanner) {
    const algorithm = u8.parse(scanner);
    const hit = fromHex(scanner.word("a host identity tag"));
    if (hit === undefined || hit.length === 0 || hit.length > 255)
      throw scanner.fail("not a host identity tag in hexadecimal");
    const publicKey = fromBase64(scanner.word("a public key"));
    if (publicKey === undefined || publicKey.length === 0) throw scanner.fail("not a public key in base64");
    const servers: Name[] = [];
    while (scanner.hasMore) servers.push(scanner.domainName("a rendezvous server"));
    return { algorithm, hit, publicKey, servers };
  },
});
