/** SRV records and the addresses of their targets (docs/spec/kubernetes-dns.md#srv-records). */
import type { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SRV } from "../../dns/record-table.ts";
import { type AddressKey, addressKey } from "../objects/addresses.ts";
import type { Port, Service } from "../objects/objects.ts";
import type { NamedService } from "../store/services/indexed-service.ts";
import { type EndpointReference, endpointLabel } from "../store/services/service-endpoints.ts";
import { addressRecord } from "./address-records.ts";
import type { ClusterZone } from "./cluster-zone.ts";
import { answered, type Resolution } from "./resolution.ts";

/** How a zone names services and their endpoints; undefined where that is longer than a name can be. */
export type ServiceNaming = Pick<ClusterZone, "serviceName" | "endpointName">;

/** Which ports a question is about. */
export interface PortFilter {
  readonly port: string;
  readonly protocol: string;
}

/** The port that a name `_port._protocol` means. A port without a name has no such name (docs/spec/kubernetes-dns.md#unnamed-ports). */
export function isPortNamed(port: Port, { port: name, protocol }: PortFilter): boolean {
  return name !== "" && port.name === name && port.protocol === protocol;
}

/** SRV records of a service with cluster addresses: the service is its own target (docs/spec/kubernetes-dns.md#cluster-srv). */
export function clusterServiceRecords(
  owner: Name,
  ttl: number,
  zone: ServiceNaming,
  entry: NamedService,
  service: Service,
  ports: readonly Port[],
): Resolution {
  const target = zone.serviceName(entry);
  if (target === undefined) return answered([]);
  const { clusterAddresses } = service;
  const weight = weightOf(clusterAddresses.length * ports.length);
  const answer: ResourceRecord[] = [];
  for (const [index, { number: port }] of ports.entries()) {
    if (ports.findIndex(({ number }) => number === port) < index) continue;
    answer.push(SRV.create(owner, ttl, { priority: 0, weight, port, target }));
  }
  if (ports.length === 0) return answered(answer);
  const additional = clusterAddresses.map((octets) =>
    addressRecord(target, ttl, octets, 0, octets.length === 4 ? 4 : 16),
  );
  return answered(answer, additional);
}

/**
 * SRV records of single endpoints: each under its own name, with the port that it listens on (docs/spec/kubernetes-dns.md#headless-srv). Without a filter
 * all ports count.
 */
export function endpointServiceRecords(
  owner: Name,
  ttl: number,
  zone: ServiceNaming,
  entry: NamedService,
  endpoints: readonly EndpointReference[],
  filter: PortFilter | undefined,
): Resolution {
  let pairs = 0;
  for (const { group } of endpoints) {
    for (const port of group.ports) if (filter === undefined || isPortNamed(port, filter)) pairs++;
  }
  const records = new ServiceRecords(owner, ttl, pairs);
  for (const { group, index } of endpoints) {
    let target: Name | undefined;
    for (const port of group.ports) {
      if (filter !== undefined && !isPortNamed(port, filter)) continue;
      target ??= zone.endpointName(endpointLabel(group, index), entry);
      if (target === undefined) break;
      records.addPort(target, port.number);
    }
    if (target === undefined) continue;
    records.addAddress(target, group.addresses, index * group.addressLength, group.addressLength);
  }
  return answered(records.answer, records.additional);
}

/** Gathers SRV records and the addresses of their targets, equal ones once. */
export class ServiceRecords {
  readonly answer: ResourceRecord[] = [];
  readonly additional: ResourceRecord[] = [];
  readonly #owner: Name;
  readonly #ttl: number;
  readonly #weight: number;
  readonly #ports = new Set<string>();
  readonly #addresses = new Map<string, Set<AddressKey>>();

  /** @param pairs how many pairs of address and port were found, before equal records are merged (docs/spec/kubernetes-dns.md#srv-weight) */
  constructor(owner: Name, ttl: number, pairs: number) {
    this.#owner = owner;
    this.#ttl = ttl;
    this.#weight = weightOf(pairs);
  }

  addPort(target: Name, port: number): void {
    const key = `${target} ${port}`;
    if (this.#ports.has(key)) return;
    this.#ports.add(key);
    this.answer.push(SRV.create(this.#owner, this.#ttl, { priority: 0, weight: this.#weight, port, target }));
  }

  addAddress(target: Name, octets: Uint8Array, offset: number, length: number): void {
    const key = addressKey(octets, offset, length);
    const owner = target.toString();
    let known = this.#addresses.get(owner);
    if (known === undefined) {
      known = new Set();
      this.#addresses.set(owner, known);
    }
    if (known.has(key)) return;
    known.add(key);
    this.additional.push(addressRecord(target, this.#ttl, octets, offset, length === 4 ? 4 : 16));
  }
}

function weightOf(pairs: number): number {
  return Math.max(1, Math.floor(100 / pairs));
}
