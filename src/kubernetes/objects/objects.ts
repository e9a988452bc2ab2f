/**
 * What DNS needs of the Kubernetes objects, and nothing else. The objects are immutable:
 * a change in the cluster makes a new one.
 *
 * Addresses are octets in network order, packed side by side. An answer copies them as they are, and a slice of a
 * hundred endpoints costs one array instead of a hundred strings: at 150,000 endpoints that is 0.6 MB instead of 6.
 */

import type { Name } from "../../dns/name.ts";
import type { AddressKey } from "./addresses.ts";

/** The kinds that the store keeps, each fed by one list and watch (or by manifests). */
export const KINDS = ["namespaces", "services", "endpoints", "pods"] as const;
export type Kind = (typeof KINDS)[number];

/** Which reduced object stands for an object of which kind. */
export interface ObjectOfKind {
  readonly namespaces: Namespace;
  readonly services: Service;
  readonly endpoints: EndpointSet;
  readonly pods: Pod;
}

/** What is watched: the kinds of the store, and those that have a store of their own. */
export interface WatchedObjects extends ObjectOfKind {
  readonly serviceentries: ServiceEntry;
}
export type WatchedKind = keyof WatchedObjects;

/** How an object is told from its siblings of one kind. */
export interface Identity {
  /** Empty for a kind that has no namespaces. */
  readonly namespace: string;
  readonly name: string;
}

export interface Namespace {
  readonly namespace: "";
  readonly name: string;
}

export type Protocol = "tcp" | "udp" | "sctp";

export interface Port {
  /** Lower case; empty for a port without a name. */
  readonly name: string;
  /** 1 to 65535. */
  readonly number: number;
  readonly protocol: Protocol;
}

/**
 * - `clusterIP`: has addresses of its own; NodePort and LoadBalancer are among these.
 * - `headless`: its addresses are those of its endpoints.
 * - `externalName`: another name for `externalName`.
 */
export type ServiceType = "clusterIP" | "headless" | "externalName";

export interface Service {
  readonly namespace: string;
  readonly name: string;
  readonly type: ServiceType;
  /** 4 or 16 octets each, without duplicates. Empty for a headless service and for one that has none yet. */
  readonly clusterAddresses: readonly Uint8Array[];
  /** Lower case, without final dot; empty unless the type is `externalName` and the target is a host name. */
  readonly externalName: string;
  readonly ports: readonly Port[];
  /** Every endpoint counts as ready (docs/spec/kubernetes-dns.md#ready-endpoints and docs/spec/kubernetes-dns.md#publish-not-ready). */
  readonly publishNotReadyAddresses: boolean;
  /**
   * External IPs, then the load balancer's addresses or host names, as text, without duplicates. Empty where they were not asked for
   * (`k8s_external`).
   */
  readonly externalAddresses: readonly string[];
}

/** One EndpointSlice, or one Endpoints object of the old API, which holds several groups. */
export interface EndpointSet {
  readonly namespace: string;
  /** The object's own name. */
  readonly name: string;
  /** The name of the service whose endpoints these are. */
  readonly service: string;
  readonly groups: readonly EndpointGroup[];
}

/** Endpoints of one family that listen on the same ports. The endpoints that are ready come first. */
export interface EndpointGroup {
  /** Octets an address takes: 4 for IPv4, 16 for IPv6. */
  readonly addressLength: 4 | 16;
  /** `count` addresses. */
  readonly addresses: Uint8Array;
  readonly count: number;
  /** How many, counted from the first, are ready. */
  readonly readyCount: number;
  /**
   * A DNS label for each endpoint, empty for one that is named after its address; undefined if that holds for all. Of an imported
   * endpoint it is two labels with a dot between, the second being its cluster's.
   */
  readonly labels: readonly string[] | undefined;
  /** The topology zone of each endpoint, lower case, empty if unknown; undefined if none is known or wanted. */
  readonly zones: readonly string[] | undefined;
  readonly ports: readonly Port[];
}

/** A running pod that has an address. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  /** Without duplicates. Keys and not octets: an array of octets for each of 150,000 pods would take 35 MB. */
  readonly addresses: readonly AddressKey[];
  /** Empty where they were not asked for. Pods of one template share one map. */
  readonly labels: ReadonlyMap<string, string>;
  /** Present on a pod that lives on its node's network: its address is that of the node. Others do without the member. */
  readonly hostNetwork?: true;
}

/** Istio's ServiceEntry: names for what may lie outside of the cluster, with the addresses that answers give. */
export interface ServiceEntry {
  readonly namespace: string;
  readonly name: string;
  /** When it was made, in seconds since 1970; 0 where it does not say. */
  readonly created: number;
  readonly hosts: readonly MeshHost[];
}

export interface MeshHost {
  /** In lower case, without the `*.` of a wildcard. */
  readonly name: Name;
  /** It stands for all names below {@link name}. */
  readonly isWildcard: boolean;
  /** 4 or 16 octets each. None only where {@link isAutomatic}. */
  readonly addresses: readonly Uint8Array[];
  /** It has no address of its own, and is given one. */
  readonly isAutomatic: boolean;
}

/** An unknown value turned into an object, or why that was not possible. */
export type Reduced<T> = { readonly object: T } | Unusable;

export interface Unusable {
  readonly problem: string;
  /** The object is valid, but meant for another controller. */
  readonly isForeign?: true;
  /** It is legal and has no effect, which is worth a word only to those who write such objects by hand. */
  readonly isUnclaimed?: true;
}
