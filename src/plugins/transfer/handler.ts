import { type Name, Rcode, RecordType, type ResourceRecord, SOA, TsigKeyRing } from "../../dns/index.ts";
import { parseScopedIpAddress } from "../../lib/net/ip-address.ts";
import { transferRecords, transferWay, type ZoneTransfer } from "../../plugin/contract/transfer.ts";
import {
  type CounterFamily,
  type Handler,
  type Next,
  type Outcome,
  type PlacedPlugin,
  type PluginInstance,
  type Query,
  ReplyStream,
  type Site,
} from "../../plugin/index.ts";
import { tsigKeyNamed } from "../../plugin/services/tsig-keys.ts";
import type { TransferConfig } from "./config.ts";
import { transferMessages } from "./messages.ts";
import { Notifier } from "./notifier.ts";

/** Zones, and the clients that may transfer them. */
interface Permission {
  readonly zone: Name;
  readonly everybody: boolean;
  /** Addresses as octets in text form. */
  readonly clients: ReadonlySet<string>;
  readonly notified: readonly { readonly host: string; readonly port: number }[];
  readonly source: string | undefined;
  /** Name of the key that must sign a transfer request. */
  readonly key: Name | undefined;
}

export class ZoneTransfers implements PluginInstance {
  readonly #site: Site;
  readonly #permissions: readonly Permission[];
  readonly #notifier: Notifier;
  readonly #transfers: CounterFamily;
  /** The keys that the permissions name. */
  readonly #keys = new TsigKeyRing();
  #ends: (() => void)[] = [];

  constructor(lines: readonly TransferConfig[], site: Site) {
    this.#site = site;
    // The longest matching zone counts; of equal zones the first.
    this.#permissions = lines
      .flatMap(permissionsOf)
      .sort((one, other) => other.zone.labelCount - one.zone.labelCount);
    this.#notifier = new Notifier(site);
    this.#transfers = site.metrics.counter({
      name: "portolan_transfer_out_total",
      help: "Zone transfer requests, by outcome.",
      labels: ["zone", "result"],
    });
  }

  readonly handle: Handler = (query, next) => {
    if (query.type !== RecordType.AXFR && query.type !== RecordType.IXFR) return next(query);
    return this.#transfer(query, next);
  };

  examine(): Promise<void> {
    return this.start();
  }

  start(): Promise<void> {
    const plugins = this.#site.block.plugins();
    for (const { key, zone } of this.#permissions) {
      if (key !== undefined) this.#keys.add(tsigKeyNamed(key, plugins, `'key' for zone ${zone}`));
    }
    return Promise.resolve();
  }

  started(): void {
    const isLeader = this.#site.feed.role === "leader";
    for (const { name, instance } of this.#site.block.plugins()) {
      const source = instance.transferSource;
      if (source === undefined) continue;
      // Each data plane has the same zones, and records their changes as long as there is a listener: one of them
      // sends all notifications.
      if (!isLeader) {
        this.#ends.push(source.onZoneChange(() => undefined));
        continue;
      }
      this.#ends.push(source.onZoneChange((apex) => this.#notify(apex, name, false)));
      for (const apex of source.transferZones) this.#notify(apex, name, true);
    }
  }

  stop(): void {
    for (const end of this.#ends) end();
    this.#ends = [];
    this.#notifier.stop();
  }

  /** @param plugin the plugin that serves the zone */
  #notify(apex: Name, plugin: string, isStart: boolean): void {
    const permission = this.#permissionFor(apex);
    if (permission === undefined) return;
    const { source, key: name, notified } = permission;
    const key = name === undefined ? undefined : this.#keys.get(name);
    for (const address of notified) this.#notifier.notify(apex, address, { source, key }, plugin, isStart);
  }

  #permissionFor(name: Name): Permission | undefined {
    return this.#permissions.find(({ zone }) => name.isAtOrBelow(zone));
  }

  #transfer(query: Query, next: Next): Outcome | Promise<Outcome> {
    const isIncremental = query.type === RecordType.IXFR;
    if (!query.overStream && !isIncremental) return query.fail(Rcode.REFUSED);
    const permission = this.#permissionFor(query.name);
    if (permission === undefined) return next(query);
    const label = query.name.toLowerCase().toString();
    const reason = reasonToRefuse(query, permission);
    if (reason !== undefined) {
      query.trace?.note(reason);
      this.#transfers.slot(permission.zone.toString(), "refused").increment();
      return query.reply({ rcode: Rcode.REFUSED });
    }
    const known = isIncremental ? knownSerial(query) : undefined;
    if (known === MALFORMED) return query.fail(Rcode.SERVFAIL);
    // A client without a copy sends serial 0.
    const base = known === 0 ? undefined : known;
    let found: ZoneTransfer | undefined;
    try {
      found = copyFrom(this.#site.block.plugins(), query.name, base);
    } catch (error) {
      this.#transfers.slot(label, "failed").increment();
      return query.fail(Rcode.SERVFAIL, error instanceof Error ? error : new Error(String(error)));
    }
    if (found === undefined) return next(query);
    const { soa } = found;
    // RFC 1995 section 2: over UDP only the SOA record is returned, which tells the client whether to retry over TCP.
    if (!query.overStream) return query.reply({ authoritative: true, answer: [soa] });
    this.#transfers.slot(label, transferWay(found, base)).increment();
    const records = transferRecords(found, base);
    return new ReplyStream(transferMessages(query, records, this.#logger(query, soa.data.serial)));
  }

  #logger(query: Query, serial: number): (count: number) => void {
    const { log } = this.#site;
    const zone = query.name;
    const { address } = query.client;
    return (count) => {
      if (count === 1)
        log.info(
          `Outgoing noop, incremental transfer for up to date zone "${zone}" to ${address} for ${serial} SOA serial`,
        );
      else
        log.info(
          `Outgoing transfer of ${count} records of zone "${zone}" to ${address} for ${serial} SOA serial`,
        );
    };
  }
}

function reasonToRefuse({ client, root }: Query, permission: Permission): string | undefined {
  const { everybody, clients, key } = permission;
  if (!everybody && !clients.has(client.octets.join(".")))
    return `${client.address} may not transfer the zone`;
  if (key === undefined || root.signer?.equals(key) === true) return undefined;
  return `the query is not signed with the key ${key}`;
}

function permissionsOf({ zones, to, source, key }: TransferConfig): Permission[] {
  const addresses = to.flatMap(({ address }) => address);
  const notified = addresses.filter((address) => address !== "*");
  const clients = new Set(notified.map(({ host }) => parseScopedIpAddress(host)?.octets.join(".") ?? ""));
  const everybody = addresses.includes("*");
  return zones.zones.map((zone) => ({ zone: zone.toLowerCase(), everybody, clients, notified, source, key }));
}

function copyFrom(
  plugins: readonly PlacedPlugin[],
  apex: Name,
  knownSerial: number | undefined,
): ZoneTransfer | undefined {
  for (const { instance } of plugins) {
    const transfer = instance.transferSource?.transfer(apex, knownSerial);
    if (transfer !== undefined) return transfer;
  }
  return undefined;
}

const MALFORMED = -1;

/** RFC 1995 section 3: the client's SOA record is in the authority section. */
function knownSerial(query: Query): number {
  const [soa, ...others]: readonly ResourceRecord[] = query.decode().authority;
  if (soa === undefined || others.length > 0 || !SOA.is(soa)) return MALFORMED;
  return soa.data.serial;
}
