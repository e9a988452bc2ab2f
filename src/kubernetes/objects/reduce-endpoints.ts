/** EndpointSlice (discovery.k8s.io/v1 and v1beta1) and Endpoints (v1) -> {@link EndpointSet}. Nothing here throws. */
import { writeU32 } from "../../dns/octets.ts";
import { formatIpAddress, parseIpAddress, parseIpv4Into, parseIpv6 } from "../../lib/net/ip-address.ts";
import { dashedAddress } from "./addresses.ts";
import { listMember, member, textMember } from "./json.ts";
import { isDnsLabel } from "./names.ts";
import type { EndpointGroup, EndpointSet, Port, Reduced } from "./objects.ts";
import { notALabel, type ReduceOptions, readIdentity, readPorts } from "./reduce.ts";

/** The label that says which service a slice belongs to; the slice's own name says nothing. */
export const SERVICE_NAME_LABEL = "kubernetes.io/service-name";

/** Likewise of a slice that belongs to an import from other clusters (KEP-1645), and the cluster that its endpoints are in. */
export const IMPORT_NAME_LABEL = "multicluster.kubernetes.io/service-name";
export const SOURCE_CLUSTER_LABEL = "multicluster.kubernetes.io/source-cluster";

/** The annotation that says when its endpoints changed. */
export const TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time";

/** One address of one endpoint, on its way into a group. */
export interface EndpointAddress {
  readonly octets: Uint8Array;
  readonly ready: boolean;
  /** A DNS label, or empty; with that of its cluster behind it where the endpoint is imported. */
  readonly label: string;
  /** Lower case, or empty. */
  readonly zone: string;
}

export function reduceEndpointSlice(value: unknown, options: ReduceOptions): Reduced<EndpointSet> {
  const service = labelOf(value, SERVICE_NAME_LABEL);
  if (service === "") {
    const problem = `the label ${SERVICE_NAME_LABEL} is missing`;
    return labelOf(value, IMPORT_NAME_LABEL) === ""
      ? { problem, isUnclaimed: true }
      : { problem, isForeign: true };
  }
  return reduceSlice(value, SERVICE_NAME_LABEL, "", options);
}

/**
 * A slice of an import: its endpoints are named after their cluster too, `db-0.east`. One that does not say which cluster that is has
 * endpoints with names as in the cluster's own zone.
 */
export function reduceImportedSlice(value: unknown, options: ReduceOptions): Reduced<EndpointSet> {
  if (labelOf(value, IMPORT_NAME_LABEL) === "")
    return { problem: `the label ${IMPORT_NAME_LABEL} is missing`, isForeign: true };
  const cluster = labelOf(value, SOURCE_CLUSTER_LABEL);
  if (cluster !== "" && !isDnsLabel(cluster))
    return { problem: notALabel(`the label ${SOURCE_CLUSTER_LABEL}`, cluster) };
  return reduceSlice(value, IMPORT_NAME_LABEL, cluster, options);
}

function labelOf(value: unknown, label: string): string {
  return textMember(member(member(value, "metadata"), "labels"), label);
}

function reduceSlice(
  value: unknown,
  serviceLabel: string,
  cluster: string,
  options: ReduceOptions,
): Reduced<EndpointSet> {
  const identity = readSliceIdentity(value, options);
  if ("problem" in identity) return identity;
  const { namespace, name } = identity.object;
  const service = labelOf(value, serviceLabel);
  if (!isDnsLabel(service)) return { problem: notALabel(`the label ${serviceLabel}`, service) };

  const endpoints = listMember(value, "endpoints");
  const packer = new GroupPacker(endpoints.length);
  // A slice of host names (docs/spec/kubernetes-dns.md#handwritten-slices) has nothing that an address record could hold.
  if (textMember(value, "addressType") !== "FQDN") {
    for (const endpoint of endpoints) {
      const ready = member(member(endpoint, "conditions"), "ready") !== false;
      const own = readLabel(endpoint, options);
      const zone = readZone(endpoint, options);
      for (const text of listMember(endpoint, "addresses")) {
        if (typeof text !== "string") continue;
        packer.add(text, ready, cluster === "" ? own : labelInCluster(text, own, cluster), zone);
      }
    }
  }
  const groups = packer.take(readPorts(listMember(value, "ports"), options));
  return { object: { namespace, name, service: options.shared.text(service), groups } };
}

export function reduceEndpoints(value: unknown, options: ReduceOptions): Reduced<EndpointSet> {
  const identity = readIdentity(value, options);
  if ("problem" in identity) return identity;
  const { namespace, name } = identity.object;
  const groups = listMember(value, "subsets").flatMap((subset) => {
    const ready = listMember(subset, "addresses");
    const notReady = listMember(subset, "notReadyAddresses");
    const packer = new GroupPacker(ready.length + notReady.length);
    for (const address of ready) packer.add(textMember(address, "ip"), true, readLabel(address, options), "");
    for (const address of notReady)
      packer.add(textMember(address, "ip"), false, readLabel(address, options), "");
    return packer.take(readPorts(listMember(subset, "ports"), options));
  });
  return { object: { namespace, name, service: name, groups } };
}

/** Packs addresses that share their ports: a group for each family that occurs, what is ready at its front. */
export function packGroups(addresses: readonly EndpointAddress[], ports: readonly Port[]): EndpointGroup[] {
  const packer = new GroupPacker(addresses.length);
  for (const { octets, ready, label, zone } of addresses)
    packer.add(formatIpAddress(octets), ready, label, zone);
  return packer.take(ports);
}

/**
 * Takes endpoints one by one. Of a hundred, nothing is left but the octets of their addresses: there are 150,000 of them. It can be used again;
 * `EventFrame` says why.
 */
export class GroupPacker {
  #expected: number;
  #ipv4: FamilyPacker | undefined;
  #ipv6: FamilyPacker | undefined;

  /** @param expected how many there will be, more or less */
  constructor(expected = 0) {
    this.#expected = expected;
  }

  /** Forgets what came, if it was taken or not. */
  begin(expected: number): void {
    this.#expected = expected;
    this.#ipv4?.clear();
    this.#ipv6?.clear();
  }

  /** @param address text; one that is no address is left out */
  add(address: string, ready: boolean, label: string, zone: string): void {
    if (address.includes(":")) {
      const octets = parseIpv6(address);
      if (octets === undefined) return;
      this.#ipv6 ??= new FamilyPacker(16);
      this.#ipv6.room(this.#expected).set(octets, this.#ipv6.end);
      this.#ipv6.add(ready, label, zone);
    } else {
      this.#ipv4 ??= new FamilyPacker(4);
      if (parseIpv4Into(this.#ipv4.room(this.#expected), this.#ipv4.end, address))
        this.#ipv4.add(ready, label, zone);
    }
  }

  /** @param address of IPv4, as a number */
  addIpv4(address: number, ready: boolean, label: string, zone: string): void {
    this.#ipv4 ??= new FamilyPacker(4);
    writeU32(this.#ipv4.room(this.#expected), this.#ipv4.end, address);
    this.#ipv4.add(ready, label, zone);
  }

  take(ports: readonly Port[]): EndpointGroup[] {
    const ipv4 = this.#ipv4?.take(ports);
    const ipv6 = this.#ipv6?.take(ports);
    if (ipv4 === undefined) return ipv6 === undefined ? [] : [ipv6];
    return ipv6 === undefined ? [ipv4] : [ipv4, ipv6];
  }
}

class FamilyPacker {
  readonly #length: 4 | 16;
  #octets = NO_OCTETS;
  #count = 0;
  #readyCount = 0;
  /** Whether each is ready; undefined as long as all that are ready stand in front. */
  #ready: boolean[] | undefined;
  /** Undefined as long as there is none. */
  #labels: string[] | undefined;
  #zones: string[] | undefined;

  constructor(length: 4 | 16) {
    this.#length = length;
  }

  /** Where the next address goes, in what {@link room} returns. */
  get end(): number {
    return this.#count * this.#length;
  }

  /** @param expected how many there will be in all, more or less */
  room(expected: number): Uint8Array {
    if (this.end + this.#length > this.#octets.length) {
      const larger = new Uint8Array(this.#length * Math.max(expected, 2 * this.#count, 1));
      larger.set(this.#octets);
      this.#octets = larger;
    }
    return this.#octets;
  }

  /** Counts the address that was written. */
  add(ready: boolean, label: string, zone: string): void {
    const index = this.#count++;
    if (ready && this.#readyCount < index)
      this.#ready ??= Array.from({ length: index }, (_, at) => at < this.#readyCount);
    this.#ready?.push(ready);
    if (ready) this.#readyCount++;
    this.#labels = withText(this.#labels, index, label);
    this.#zones = withText(this.#zones, index, zone);
  }

  clear(): void {
    this.#octets = NO_OCTETS;
    this.#count = 0;
    this.#readyCount = 0;
    this.#ready = undefined;
    this.#labels = undefined;
    this.#zones = undefined;
  }

  /** @returns undefined where there is no address */
  take(ports: readonly Port[]): EndpointGroup | undefined {
    const count = this.#count;
    if (count === 0) return undefined;
    const order = this.#ready && orderByReadiness(this.#ready);
    return {
      addressLength: this.#length,
      addresses: this.#packed(order),
      count,
      readyCount: this.#readyCount,
      labels: ordered(this.#labels, count, order),
      zones: ordered(this.#zones, count, order),
      ports,
    };
  }

  #packed(order: readonly number[] | undefined): Uint8Array {
    const length = this.#length;
    if (order === undefined)
      return this.end === this.#octets.length ? this.#octets : this.#octets.slice(0, this.end);
    const packed = new Uint8Array(this.end);
    for (const [at, from] of order.entries())
      packed.set(this.#octets.subarray(from * length, (from + 1) * length), at * length);
    return packed;
  }
}

const NO_OCTETS = new Uint8Array();

/** What is ready first, and otherwise as it came. */
function orderByReadiness(ready: readonly boolean[]): number[] {
  const indexes = [...ready.keys()];
  return [...indexes.filter((at) => ready[at]), ...indexes.filter((at) => !ready[at])];
}

function withText(texts: string[] | undefined, index: number, text: string): string[] | undefined {
  if (texts === undefined) {
    if (text === "") return undefined;
    return [...new Array<string>(index).fill(""), text];
  }
  texts.push(text);
  return texts;
}

function ordered(
  texts: readonly string[] | undefined,
  count: number,
  order: readonly number[] | undefined,
): readonly string[] | undefined {
  if (texts === undefined) return undefined;
  return Array.from({ length: count }, (_, at) => texts[order?.[at] ?? at] ?? "");
}

/** A slice's own name never shows in DNS and may hold dots. */
function readSliceIdentity(
  value: unknown,
  options: ReduceOptions,
): Reduced<{ namespace: string; name: string }> {
  const metadata = member(value, "metadata");
  const namespace = textMember(metadata, "namespace");
  const name = textMember(metadata, "name");
  if (name === "") return { problem: notALabel("metadata.name", name) };
  if (!isDnsLabel(namespace)) return { problem: notALabel("metadata.namespace", namespace) };
  return { object: { namespace: options.shared.text(namespace), name } };
}

function readLabel(endpoint: unknown, options: ReduceOptions): string {
  const target = member(endpoint, "targetRef");
  return endpointLabel(
    textMember(endpoint, "hostname"),
    textMember(target, "kind"),
    textMember(target, "name"),
    options,
  );
}

/**
 * The endpoint's `hostname`, or with the option the name of its pod, as long as that is one label (docs/spec/kubernetes-dns.md#endpoint-names).
 * @param targetKind what the endpoint stands for, empty for a pod
 */
export function endpointLabel(
  hostname: string,
  targetKind: string,
  targetName: string,
  options: ReduceOptions,
): string {
  if (hostname !== "" && isDnsLabel(hostname)) return hostname;
  if (!options.endpointPodNames) return "";
  return (targetKind === "" || targetKind === "Pod") && isDnsLabel(targetName) ? targetName : "";
}

function readZone(endpoint: unknown, options: ReduceOptions): string {
  if (!options.zones) return "";
  const zone =
    textMember(endpoint, "zone") || textMember(member(endpoint, "topology"), "topology.kubernetes.io/zone");
  return endpointZone(zone, options);
}

/** The topology zone in lower case, empty where zones are not wanted. */
export function endpointZone(zone: string, { zones, shared }: ReduceOptions): string {
  return zones && zone !== "" ? shared.text(zone.toLowerCase()) : "";
}

/** The label of an endpoint, with that of its cluster behind it. */
function labelInCluster(address: string, own: string, cluster: string): string {
  const octets = parseIpAddress(address);
  if (octets === undefined) return "";
  return `${own || dashedAddress(octets, 0, octets.length === 4 ? 4 : 16)}.${cluster}`;
}
