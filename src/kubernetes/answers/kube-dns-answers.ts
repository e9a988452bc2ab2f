/** Names of the cluster -> records, as kube-dns answered them (docs/spec/kube-dns.md#record-tree, docs/spec/kube-dns.md#lookup and docs/spec/kube-dns.md#synthesis). */
import { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { A, AAAA, CNAME, PTR, SOA, SRV } from "../../dns/record-table.ts";
import { formatData } from "../../dns/resource-record.ts";
import { RecordType } from "../../dns/type-names.ts";
import { formatIpv4, formatIpv6, parseIpv4 } from "../../lib/net/ip-address.ts";
import { addressOfKey } from "../objects/addresses.ts";
import { labelAt } from "../store/endpoints/endpoint-block.ts";
import { addressStandsAt } from "../store/services/service-endpoints.ts";
import { addressOfReverseName, prefixOfReverseName } from "../store/tables/reverse-names.ts";
import { addressLengthOf } from "./address-records.ts";
import type { ClusterAnswers } from "./cluster-answers.ts";
import { type ClusterZone, joinLabels } from "./cluster-zone.ts";
import { type KubeDnsEntry, kubeDnsEntries, kubeDnsLeaf } from "./kube-dns-tree.ts";
import {
  aliasOf,
  answered,
  BEGINNING_OF_ADDRESSES,
  NO_DATA,
  NO_SERVICE,
  NO_SUCH_ADDRESS,
  type Resolution,
} from "./resolution.ts";

const PRIORITY = 10;
const SOA_TTL = 3600;
const NEGATIVE_TTL = 60;
const HOUR_S = 3600;
/** Links of a chain of aliases. */
const MAX_LINKS = 8;

export class KubeDnsAnswers {
  readonly #answers: ClusterAnswers;

  constructor(answers: ClusterAnswers) {
    this.#answers = answers;
  }

  /** What there is at a name of a zone that is not for reverse names. An `alias` in what comes back lies outside of the zone. */
  resolve(owner: Name, type: number, zone: ClusterZone, seconds: number): Resolution {
    const labels = owner.labelsAbove(zone.name);
    if (labels.length === 0 && type === RecordType.SOA)
      return answered([startOfAuthority(zone, seconds, SOA_TTL, owner)]);
    const pod = podAddress(labels);
    if (pod !== undefined) return pod === "" ? NO_DATA : this.#ofPod(owner, type, pod);
    if (type === RecordType.CNAME) return this.#exact(owner, labels, zone);
    const entries = kubeDnsEntries(this.#answers.view, labels);
    if (entries.length === 0) return NO_SERVICE;
    if (type === RecordType.SRV) return this.#services(owner, entries, zone);
    const length = addressLengthOf(type);
    return length === 0 ? NO_DATA : this.#addresses({ owner, type, zone, links: [] }, entries);
  }

  /** The name of an address: of a cluster address its service, of an endpoint with a hostname that (docs/spec/kube-dns.md#reverse-lookups). */
  resolveReverse(owner: Name): Resolution {
    const { view } = this.#answers;
    const [zone] = this.#answers.forwardZones;
    const key = addressOfReverseName(owner);
    if (key === undefined || zone === undefined) {
      const prefix = prefixOfReverseName(owner);
      return prefix !== undefined && view.store.services.hasAddressBelow(prefix)
        ? BEGINNING_OF_ADDRESSES
        : NO_SUCH_ADDRESS;
    }
    for (const entry of view.store.services.servicesAt(key)) {
      const target = view.selects(entry.namespace.name) ? zone.serviceName(entry) : undefined;
      if (target !== undefined) return answered([PTR.create(owner, view.ttl, { target })]);
    }
    const octets = addressOfKey(key);
    for (const set of view.store.services.endpointSetsAt(key)) {
      const entry = set.owner;
      if (entry.type !== "headless" || !view.selects(entry.namespace.name)) continue;
      for (const { group, index } of entry.endpoints.published()) {
        const label = labelAt(group, index);
        if (label === "" || !addressStandsAt(group, index, octets)) continue;
        const target = zone.endpointName(label, entry);
        if (target !== undefined) return answered([PTR.create(owner, view.ttl, { target })]);
      }
    }
    return NO_SUCH_ADDRESS;
  }

  /** For the authority section of an answer without records. */
  authority(zone: ClusterZone, seconds: number): ResourceRecord {
    return kubeDnsAuthority(zone, seconds);
  }

  #ofPod(owner: Name, type: number, address: string): Resolution {
    if (type !== RecordType.A) return NO_DATA;
    return answered([A.create(owner, this.#answers.view.ttl, { address })]);
  }

  /** A query for CNAME asks for the record itself: only a record's own name has one. */
  #exact(owner: Name, labels: readonly string[], zone: ClusterZone): Resolution {
    const leaf = kubeDnsLeaf(this.#answers.view, labels);
    if (leaf === undefined) return NO_SERVICE;
    if (leaf.host instanceof Uint8Array) return NO_DATA;
    const target = this.#hostName(leaf, zone);
    return target === undefined
      ? NO_DATA
      : answered([CNAME.create(owner, this.#answers.view.ttl, { target })]);
  }

  #addresses(question: AddressQuestion, entries: readonly KubeDnsEntry[]): Resolution {
    const { owner, type, zone, links } = question;
    const { ttl } = this.#answers.view;
    const length = addressLengthOf(type);
    const records = new Records();
    let outside: Name | undefined;
    let hasAlias = false;
    for (const entry of entries) {
      if (entry.host instanceof Uint8Array) {
        if (entry.host.length === length) records.add(addressOf(owner, ttl, entry.host));
        continue;
      }
      const target = this.#hostName(entry, zone);
      if (target === undefined || target.equals(owner) || links.some((link) => link.equals(target))) continue;
      const inside = this.#answers.zoneOf(target);
      if (inside === undefined) {
        outside ??= target;
        continue;
      }
      if (links.length >= MAX_LINKS || inside.isReverse) continue;
      const found = this.#behind({ owner: target, type, zone: inside, links: [...links, owner] }, entry);
      // One alias is all that a name may have; what is behind the others stays with it.
      if (found.length > 0 && !hasAlias) {
        hasAlias = true;
        records.add(CNAME.create(owner, ttl, { target }));
      }
      for (const record of found) records.add(record);
    }
    if (records.size === 0 && outside !== undefined && links.length === 0) return aliasOf(outside);
    return answered(records.all);
  }

  /** The addresses of the target of an entry. */
  #behind(question: AddressQuestion, { address }: KubeDnsEntry): readonly ResourceRecord[] {
    const { owner, type, zone } = question;
    const { view } = this.#answers;
    if (address === undefined)
      return this.#addresses(question, kubeDnsEntries(view, owner.labelsAbove(zone.name))).answer;
    return address.length === addressLengthOf(type) ? [addressOf(owner, view.ttl, address)] : [];
  }

  #services(owner: Name, entries: readonly KubeDnsEntry[], zone: ClusterZone): Resolution {
    const { ttl } = this.#answers.view;
    const answer = new Records();
    const additional = new Records();
    const weight = Math.floor(100 / entries.length);
    for (const entry of entries) {
      const { host, port } = entry;
      const target = host instanceof Uint8Array ? nameIn(zone, entry.name) : this.#hostName(entry, zone);
      if (target === undefined) continue;
      answer.add(SRV.create(owner, ttl, { priority: PRIORITY, weight, port, target }));
      if (host instanceof Uint8Array) {
        additional.add(addressOf(target, ttl, host));
        continue;
      }
      const inside = this.#answers.zoneOf(target);
      if (inside === undefined || inside.isReverse) continue;
      for (const type of [RecordType.A, RecordType.AAAA]) {
        const found = this.#behind({ owner: target, type, zone: inside, links: [owner] }, entry);
        for (const record of found) additional.add(record);
      }
    }
    return answered(answer.all, additional.all);
  }

  #hostName({ host, isInside }: KubeDnsEntry, zone: ClusterZone): Name | undefined {
    if (host instanceof Uint8Array) return undefined;
    return isInside ? nameIn(zone, host) : joinLabels(host, Name.root);
  }
}

interface AddressQuestion {
  readonly owner: Name;
  readonly type: number;
  readonly zone: ClusterZone;
  /** The aliases that led here. */
  readonly links: readonly Name[];
}

/** Records, each once. */
class Records {
  readonly #byText = new Map<string, ResourceRecord>();

  get size(): number {
    return this.#byText.size;
  }

  get all(): ResourceRecord[] {
    return [...this.#byText.values()];
  }

  add(record: ResourceRecord): void {
    const key = `${record.name.toLowerCase()} ${record.type} ${formatData(record)}`;
    if (!this.#byText.has(key)) this.#byText.set(key, record);
  }
}

function nameIn(zone: ClusterZone, labels: readonly string[]): Name | undefined {
  return joinLabels(labels, zone.name);
}

function addressOf(owner: Name, ttl: number, octets: Uint8Array): ResourceRecord {
  return octets.length === 4
    ? A.create(owner, ttl, { address: formatIpv4(octets) })
    : AAAA.create(owner, ttl, { address: formatIpv6(octets) });
}

/**
 * The address that the name of a pod says, whether there is such a pod or not.
 * @returns empty for a label that says none, undefined for another name
 */
function podAddress(labels: readonly string[]): string | undefined {
  const [label = "", namespace, root] = labels;
  if (labels.length !== 3 || root !== "pod" || label === "*" || namespace === "*") return undefined;
  const octets = parseIpv4(label.replaceAll("-", "."));
  return octets === undefined ? "" : formatIpv4(octets);
}

/** For the authority section of an answer without records. */
export function kubeDnsAuthority(zone: ClusterZone, seconds: number): ResourceRecord {
  return startOfAuthority(zone, seconds, NEGATIVE_TTL, zone.name);
}

/** The serial is the hour (docs/spec/kube-dns.md#soa). */
function startOfAuthority(zone: ClusterZone, seconds: number, ttl: number, owner: Name): ResourceRecord {
  return SOA.create(owner, ttl, {
    primary: zone.nameServer,
    mailbox: zone.mailbox,
    serial: seconds - (seconds % HOUR_S),
    refresh: 28_800,
    retry: 7200,
    expire: 604_800,
    minimum: NEGATIVE_TTL,
  });
}
