/** A zone of Azure DNS as records. */
import {
  A,
  AAAA,
  CAA,
  CNAME,
  MX,
  Name,
  NS,
  PTR,
  type ResourceRecord,
  SOA,
  SRV,
  TXT,
} from "../../dns/index.ts";
import { list, record, string } from "../../lib/net/http-client.ts";
import type { ZoneListing } from "../../zones/backed/zone-listing.ts";
import type { ZoneSource } from "../../zones/backed/zone-source.ts";
import type { ResourceManager } from "./resource-manager.ts";

export interface DnsZoneSourceOptions {
  readonly manager: ResourceManager;
  readonly group: string;
  readonly zone: string;
  readonly access: "public" | "private";
  readonly identity: string;
}

/** Lists of public and of private zones differ in their names, and in the case of fields. */
const LISTS = {
  public: { kind: "dnsZones", list: "all", version: "2018-05-01" },
  private: { kind: "privateDnsZones", list: "ALL", version: "2020-06-01" },
} as const;

type Fields = Readonly<Record<string, unknown>>;
type MakeRecord = (name: Name, ttl: number, fields: Fields) => ResourceRecord;

export class DnsZoneSource implements ZoneSource {
  readonly text: string;
  readonly identity: string;
  readonly #options: DnsZoneSourceOptions;

  constructor(options: DnsZoneSourceOptions) {
    this.#options = options;
    this.identity = options.identity;
    this.text = `${options.access} zone ${options.zone} of resource group ${options.group}`;
  }

  async list(listing: ZoneListing, signal: AbortSignal): Promise<void> {
    const { manager, group, zone, access } = this.#options;
    const { kind, list: name, version } = LISTS[access];
    const path = `/providers/Microsoft.Network/${kind}/${encodeURIComponent(zone.replace(/\.$/, ""))}/${name}`;
    for await (const entry of manager.entries(group, path, version, signal))
      addRecordSet(record(entry), listing);
  }
}

function addRecordSet({ name, type, properties }: Fields, listing: ZoneListing): void {
  const fields = withLowerCase(record(properties));
  const seconds = typeof fields.ttl === "number" ? fields.ttl : Number.NaN;
  const relative = string(name);
  const owner = relative === "@" ? listing.apex.toString() : `${relative}.${listing.apex}`;
  const typeName = string(type).split("/").at(-1) ?? "";
  const row = ROWS[typeName];
  if (row === undefined) {
    listing.passOver(owner, typeName, "Azure DNS has no such type");
    return;
  }
  // Alias records, made in the portal, have a target and no values.
  const values = row.isSingle
    ? fields[row.field] === undefined
      ? []
      : [fields[row.field]]
    : list(fields[row.field]);
  for (const value of values)
    listing.add(owner, seconds, typeName, (at) => row.make(at, seconds, record(value)));
}

function withLowerCase(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
}

interface Row {
  readonly field: string;
  readonly isSingle: boolean;
  readonly make: MakeRecord;
}

function many(field: string, make: MakeRecord): Row {
  return { field, isSingle: false, make };
}

function one(field: string, make: MakeRecord): Row {
  return { field, isSingle: true, make };
}

const ROWS: Readonly<Record<string, Row>> = {
  A: many("arecords", (name, ttl, { ipv4Address }) => A.create(name, ttl, { address: text(ipv4Address) })),
  AAAA: many("aaaarecords", (name, ttl, { ipv6Address }) =>
    AAAA.create(name, ttl, { address: text(ipv6Address) }),
  ),
  CAA: many("caarecords", (name, ttl, { flags, tag, value }) =>
    CAA.create(name, ttl, { flags: number(flags), tag: octets(tag), value: octets(value) }),
  ),
  CNAME: one("cnamerecord", (name, ttl, { cname }) => CNAME.create(name, ttl, { target: host(cname) })),
  MX: many("mxrecords", (owner, ttl, { preference, exchange }) =>
    MX.create(owner, ttl, { preference: number(preference), exchange: host(exchange) }),
  ),
  NS: many("nsrecords", (name, ttl, { nsdname }) => NS.create(name, ttl, { nameServer: host(nsdname) })),
  PTR: many("ptrrecords", (name, ttl, { ptrdname }) => PTR.create(name, ttl, { target: host(ptrdname) })),
  SOA: one("soarecord", (name, ttl, fields) =>
    SOA.create(name, ttl, {
      primary: host(fields.host),
      mailbox: host(fields.email),
      serial: number(fields.serialNumber),
      refresh: number(fields.refreshTime),
      retry: number(fields.retryTime),
      expire: number(fields.expireTime),
      minimum: number(fields.minimumTTL ?? fields.minimumTtl),
    }),
  ),
  SRV: many("srvrecords", (name, ttl, { priority, weight, port, target }) =>
    SRV.create(name, ttl, {
      priority: number(priority),
      weight: number(weight),
      port: number(port),
      target: host(target),
    }),
  ),
  TXT: many("txtrecords", (name, ttl, { value }) =>
    TXT.create(name, ttl, { strings: list(value).map(octets) }),
  ),
};

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new TypeError(`${JSON.stringify(value)} is not text`);
}

function number(value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
  throw new TypeError(`${JSON.stringify(value)} is not a number`);
}

function host(value: unknown): Name {
  return Name.parse(text(value));
}

function octets(value: unknown): Uint8Array {
  return Buffer.from(text(value), "utf8");
}
