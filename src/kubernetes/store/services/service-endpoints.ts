/** The endpoints of one service as answers need them, gathered from all of its slices. */
import { type AddressKey, addressKey, dashedAddress } from "../../objects/addresses.ts";
import type { EndpointGroup } from "../../objects/objects.ts";
import { labelAt } from "../endpoints/endpoint-block.ts";

/** One address of one endpoint: number `index` of a group. */
export interface EndpointReference {
  readonly group: EndpointGroup;
  readonly index: number;
}

/**
 * A snapshot: it is made when a query first needs it and dropped when the service or one of its slices changes, so all
 * that one answer holds comes from one state (docs/spec/kubernetes-dns.md#one-state).
 */
export class ServiceEndpoints {
  /** The groups of all slices. Of each, the first {@link visibleCount} endpoints are published. */
  readonly groups: readonly EndpointGroup[];
  readonly #publishNotReadyAddresses: boolean;
  #ipv4: Uint8Array | undefined;
  #ipv6: Uint8Array | undefined;
  #byLabel: ReadonlyMap<string, readonly EndpointReference[]> | undefined;

  constructor(groups: readonly EndpointGroup[], publishNotReadyAddresses: boolean) {
    this.groups = groups;
    this.#publishNotReadyAddresses = publishNotReadyAddresses;
  }

  /** How many endpoints of a group, counted from the first, DNS shows. */
  visibleCount(group: EndpointGroup): number {
    return visibleCount(group, this.#publishNotReadyAddresses);
  }

  /** Whether no endpoint at all is published. */
  get isEmpty(): boolean {
    for (const group of this.groups) if (this.visibleCount(group) > 0) return false;
    return true;
  }

  /** The published IPv4 addresses, four octets each, every one once. */
  get ipv4(): Uint8Array {
    this.#ipv4 ??= this.#gather(4);
    return this.#ipv4;
  }

  /** The published IPv6 addresses, sixteen octets each, every one once. */
  get ipv6(): Uint8Array {
    this.#ipv6 ??= this.#gather(16);
    return this.#ipv6;
  }

  /** The published endpoints that bear a hostname (or a pod's name). An endpoint named after its address is not here. */
  labelled(label: string): readonly EndpointReference[] {
    this.#byLabel ??= this.#mapLabels();
    return this.#byLabel.get(label) ?? NO_ENDPOINTS;
  }

  /** Every published endpoint. */
  published(): EndpointReference[] {
    const references: EndpointReference[] = [];
    for (const group of this.groups) {
      const visible = this.visibleCount(group);
      for (let index = 0; index < visible; index++) references.push({ group, index });
    }
    return references;
  }

  #gather(length: 4 | 16): Uint8Array {
    const groups = this.groups.filter((group) => group.addressLength === length);
    // A single endpoint cannot be there twice.
    const only = groups[0];
    if (groups.length === 1 && only !== undefined && this.visibleCount(only) === 1)
      return only.addresses.subarray(0, length);
    const seen = new Set<AddressKey>();
    const octets: number[] = [];
    for (const group of groups) {
      const end = this.visibleCount(group) * length;
      for (let at = 0; at < end; at += length) {
        const key = addressKey(group.addresses, at, length);
        if (seen.has(key)) continue;
        seen.add(key);
        for (let offset = at; offset < at + length; offset++) octets.push(group.addresses[offset] ?? 0);
      }
    }
    return Uint8Array.from(octets);
  }

  #mapLabels(): Map<string, EndpointReference[]> {
    const byLabel = new Map<string, EndpointReference[]>();
    for (const group of this.groups) {
      const visible = this.visibleCount(group);
      for (const [index, label] of (group.labels ?? []).entries()) {
        if (label === "" || index >= visible) continue;
        const references = byLabel.get(label);
        if (references === undefined) byLabel.set(label, [{ group, index }]);
        else references.push({ group, index });
      }
    }
    return byLabel;
  }
}

/** How many endpoints of a group, counted from the first, DNS shows. */
export function visibleCount(
  { count, readyCount }: EndpointGroup,
  publishNotReadyAddresses: boolean,
): number {
  return publishNotReadyAddresses ? count : readyCount;
}

export const NO_ENDPOINTS: readonly EndpointReference[] = [];

/** Whether an endpoint has an address. */
export function addressStandsAt(group: EndpointGroup, index: number, octets: Uint8Array): boolean {
  const start = index * group.addressLength;
  for (let offset = 0; offset < octets.length; offset++) {
    if (group.addresses[start + offset] !== octets[offset]) return false;
  }
  return octets.length === group.addressLength;
}

/** The label of an endpoint below its service: its hostname, or what is made of its address (docs/spec/kubernetes-dns.md#endpoint-names). */
export function endpointLabel(group: EndpointGroup, index: number): string {
  return (
    labelAt(group, index) || dashedAddress(group.addresses, index * group.addressLength, group.addressLength)
  );
}
