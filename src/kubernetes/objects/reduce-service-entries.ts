/**
 * ServiceEntry (networking.istio.io) -> {@link ServiceEntry}: hosts with the addresses that answers give (docs/spec/kube-dns.md#istio and docs/spec/kube-dns.md#automatic-addresses).
 * Nothing here throws.
 */
import { Name } from "../../dns/name.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { listMember, member, textEntries, textMember } from "./json.ts";
import { isDnsLabel } from "./names.ts";
import type { MeshHost, Reduced, ServiceEntry, Unusable } from "./objects.ts";

/** What becomes of hosts without addresses of their own. */
export interface ServiceEntryRules {
  /** What they get; none for no answer. */
  readonly defaultAddresses: readonly Uint8Array[];
  /** They are given addresses of a range, where Istio would do so. That goes before {@link defaultAddresses}. */
  readonly isAutomatic: boolean;
}

/** As the schema of the resource has it. */
const MAX_HOSTS = 256;
const MAX_ADDRESSES = 256;
/** With `false` an entry wants no automatic addresses. */
const AUTOMATIC_LABEL = "networking.istio.io/enable-autoallocate-ip";

export function reduceServiceEntry(value: unknown, rules: ServiceEntryRules): Reduced<ServiceEntry> {
  const metadata = member(value, "metadata");
  const spec = member(value, "spec");
  const namespace = textMember(metadata, "namespace");
  const name = textMember(metadata, "name");
  if (name === "" || name.length > 253 || !isDnsLabel(namespace))
    return { problem: "metadata.name or metadata.namespace is missing" };
  // The caller of a host says the address then.
  const resolution = textMember(spec, "resolution");
  if (resolution === "" || resolution === "NONE") return FOR_NOBODY;
  const hosts = readHosts(spec);
  if ("problem" in hosts) return hosts;
  const texts = listMember(spec, "addresses").map(String);
  const given = readAddresses(texts);
  if (given === undefined)
    return { problem: `spec.addresses: "${texts.find((text) => !isAddress(text))}" is not an IP address` };
  const created = Math.max(Math.floor(Date.parse(textMember(metadata, "creationTimestamp")) / 1000) || 0, 0);
  const addressed = hosts.map((host): MeshHost => {
    if (texts.length > 0) return { ...host, addresses: given };
    const allocated = allocatedTo(host, value);
    if (allocated.length > 0) return { ...host, addresses: allocated };
    const isAutomatic = rules.isAutomatic && !host.isWildcard && mayBeAutomatic(metadata);
    return { ...host, addresses: isAutomatic ? [] : rules.defaultAddresses, isAutomatic };
  });
  const usable = addressed.filter(({ addresses, isAutomatic }) => addresses.length > 0 || isAutomatic);
  return usable.length === 0 ? FOR_NOBODY : { object: { namespace, name, created, hosts: usable } };
}

/** There is nothing wrong with it, and nothing to answer either. */
const FOR_NOBODY: Unusable = { problem: "has no addresses", isForeign: true };

function readHosts(spec: unknown): MeshHost[] | Unusable {
  const texts = listMember(spec, "hosts");
  if (texts.length === 0) return { problem: "spec.hosts is empty" };
  if (texts.length > MAX_HOSTS) return { problem: `spec.hosts has more than ${MAX_HOSTS} hosts` };
  const shared = listMember(spec, "ports").find((port) => !tellsHosts(textMember(port, "protocol")));
  if (texts.length > 1 && shared !== undefined) {
    const protocol = textMember(shared, "protocol") || "TCP";
    return {
      problem: `spec.hosts: a port of protocol ${protocol} serves one host, and there are ${texts.length}`,
    };
  }
  const hosts: MeshHost[] = [];
  for (const text of texts) {
    const host = typeof text === "string" ? readHost(text) : undefined;
    if (host === undefined) return { problem: `spec.hosts: "${String(text)}" is not a host` };
    hosts.push(host);
  }
  return hosts;
}

function readHost(text: string): MeshHost | undefined {
  const isWildcard = text.startsWith("*.");
  const rest = isWildcard ? text.slice(2) : text;
  if (rest === "" || /[*\s/]/.test(rest)) return undefined;
  const name = Name.tryParse(rest.toLowerCase());
  if (name === undefined || name.isRoot) return undefined;
  return { name, isWildcard, addresses: [], isAutomatic: false };
}

/** Whether what is sent over a port says for which host it is. */
function tellsHosts(protocol: string): boolean {
  return /^(HTTP2?|HTTPS|TLS|GRPC|GRPC-WEB|HTTP_PROXY)$/i.test(protocol);
}

function isAddress(text: string): boolean {
  return parseIpAddress(text) !== undefined || isNetwork(text);
}

function isNetwork(text: string): boolean {
  const [, address = "", bits = ""] = /^([^/]+)\/(\d{1,3})$/.exec(text) ?? [];
  const octets = parseIpAddress(address);
  return octets !== undefined && Number(bits) <= 8 * octets.length;
}

/** Networks are passed over, those of one address as well. @returns undefined where something is neither */
function readAddresses(texts: readonly string[]): Uint8Array[] | undefined {
  if (!texts.every(isAddress)) return undefined;
  return texts.flatMap((text) => parseIpAddress(text) ?? []).slice(0, MAX_ADDRESSES);
}

/** What Istio's controller has allocated (`status.addresses`); an entry without host is for all of them. */
function allocatedTo({ name, isWildcard }: MeshHost, value: unknown): Uint8Array[] {
  if (!mayBeAutomatic(member(value, "metadata"))) return [];
  const text = `${isWildcard ? "*." : ""}${name.toString()}`.replace(/\.$/, "");
  return listMember(member(value, "status"), "addresses")
    .filter((each) => ["", text].includes(textMember(each, "host").toLowerCase().replace(/\.$/, "")))
    .flatMap((each) => parseIpAddress(textMember(each, "value")) ?? [])
    .slice(0, MAX_ADDRESSES);
}

function mayBeAutomatic(metadata: unknown): boolean {
  return new Map(textEntries(metadata, "labels")).get(AUTOMATIC_LABEL)?.toLowerCase() !== "false";
}
