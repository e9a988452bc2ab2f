/** The keys that kube2sky writes for the objects of a cluster (docs/spec/kube-dns.md#kube2sky). */
import type { Name } from "../../dns/name.ts";
import { keyOfName } from "../../etcd/skydns/key-path.ts";
import { formatServiceItem } from "../../etcd/skydns/service-item.ts";
import { addressOfKey, dashedAddress } from "../../kubernetes/objects/addresses.ts";
import type { Pod, Port } from "../../kubernetes/objects/objects.ts";
import type { IndexedService } from "../../kubernetes/store/services/indexed-service.ts";
import { formatIpAddress } from "../../lib/net/ip-address.ts";

const COMMON = { priority: 10, weight: 10, ttl: 30 };

/** Key -> value, both as in etcd. */
export type Keys = Map<string, string>;

export class WantedKeys {
  readonly #top: string;
  readonly #domain: Name;

  /** @param prefix such as `/skydns` */
  constructor(prefix: string, domain: Name) {
    this.#domain = domain;
    this.#top = keyOfName(prefix, domain);
  }

  /** The key above all others. */
  get top(): string {
    return this.#top;
  }

  /** The key above all keys of a service. */
  topOfService(namespace: string, name: string): string {
    return `${this.#top}/svc/${namespace}/${name}`;
  }

  topOfPod(namespace: string, label: string): string {
    return `${this.#top}/pod/${namespace}/${label}`;
  }

  /** Empty for an ExternalName, and for a service without addresses. */
  ofService(entry: IndexedService): Keys {
    const { service } = entry;
    const keys: Keys = new Map();
    if (service === undefined || service.type === "externalName") return keys;
    const top = this.topOfService(service.namespace, service.name);
    const host = `${service.name}.${service.namespace}.svc.${this.#domain}`;
    if (service.type === "headless") {
      this.#addEndpoints(keys, entry, top, host);
      return keys;
    }
    const labels = service.clusterAddresses.map((octets) =>
      addRecord(keys, top, undefined, formatIpAddress(octets)),
    );
    const [label] = labels;
    // The SRV targets are the name, which has all addresses.
    if (label !== undefined) for (const port of service.ports) addPort(keys, top, port, label, host);
    return keys;
  }

  ofPod({ namespace, addresses }: Pod): Keys {
    const keys: Keys = new Map();
    for (const key of addresses) {
      const octets = addressOfKey(key);
      const label = dashedAddress(octets, 0, octets.length === 4 ? 4 : 16);
      addRecord(keys, this.topOfPod(namespace, label), undefined, formatIpAddress(octets));
    }
    return keys;
  }

  #addEndpoints(keys: Keys, entry: IndexedService, top: string, host: string): void {
    for (const { group, index } of entry.endpoints.published()) {
      const { addressLength, addresses, labels, ports } = group;
      const octets = addresses.subarray(index * addressLength, (index + 1) * addressLength);
      const label = addRecord(keys, top, labels?.[index] || undefined, formatIpAddress(octets));
      for (const port of ports) addPort(keys, top, port, label, `${label}.${host}`);
    }
  }
}

/** @returns the last part of the key: the given label, or a hash of the value */
function addRecord(keys: Keys, top: string, label: string | undefined, host: string): string {
  const value = formatServiceItem({ host, ...COMMON });
  const last = label ?? labelOf(value);
  keys.set(`${top}/${last}`, value);
  return last;
}

function addPort(
  keys: Keys,
  top: string,
  { name, number, protocol }: Port,
  label: string,
  host: string,
): void {
  if (name !== "")
    keys.set(`${top}/_${protocol}/_${name}/${label}`, formatServiceItem({ host, port: number, ...COMMON }));
}

/** FNV-1a of 32 bits, in hexadecimal without leading zeros. */
export function labelOf(text: string): string {
  let hash = 0x811c9dc5;
  for (const octet of Buffer.from(text)) hash = Math.imul(hash ^ octet, 0x01000193);
  return (hash >>> 0).toString(16);
}
