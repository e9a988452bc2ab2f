/** What a change in the cluster did to the answers. */
import type { AddressKey } from "../../objects/addresses.ts";

/** The answers that one change touched; everything else stays as it was. Lists may name a thing twice. */
export interface StoreChange {
  /** Keys `service.namespace`: the name of the service and every name below it. */
  readonly services: readonly string[];
  /** Keys of services whose external addresses or ports changed (`k8s_external`). */
  readonly externalServices: readonly string[];
  /** External addresses whose reverse name answers otherwise (`k8s_external`). */
  readonly externalAddresses: readonly AddressKey[];
  /** Addresses whose reverse name answers otherwise. */
  readonly addresses: readonly AddressKey[];
  /** Namespaces that came or went: every name below them. */
  readonly namespaces: readonly string[];
  /** Addresses of pods that came, went or changed hands: pod records, and what is known of clients. */
  readonly podAddresses: readonly AddressKey[];
  /** Any answer may be another one: the lists above do not say which. */
  readonly everything?: true;
}

/** The change from one cluster to another. */
export const EVERYTHING: StoreChange = {
  services: [],
  externalServices: [],
  externalAddresses: [],
  addresses: [],
  namespaces: [],
  podAddresses: [],
  everything: true,
};

/**
 * Gathers a {@link StoreChange}. Names are collected only while there is a listener, so that the first listing of a large
 * cluster makes no lists in vain.
 */
export class ChangeRecorder {
  services: string[] = [];
  externalServices: string[] = [];
  externalAddresses: AddressKey[] = [];
  addresses: AddressKey[] = [];
  namespaces: string[] = [];
  podAddresses: AddressKey[] = [];
  /** Whether answers of the cluster's zones changed. */
  internal = false;
  /** Whether external addresses changed. */
  external = false;
  /** Whether names are to be gathered. */
  listening = false;

  service(key: string): void {
    this.internal = true;
    if (this.listening) this.services.push(key);
  }

  externalService(key: string): void {
    this.external = true;
    if (this.listening) this.externalServices.push(key);
  }

  externalAddress(key: AddressKey): void {
    this.external = true;
    if (this.listening) this.externalAddresses.push(key);
  }

  namespace(name: string): void {
    this.internal = true;
    if (this.listening) this.namespaces.push(name);
  }

  address(key: AddressKey): void {
    if (this.listening) this.addresses.push(key);
  }

  podAddress(key: AddressKey): void {
    this.internal = true;
    if (this.listening) this.podAddresses.push(key);
  }

  /** Hands out what was gathered and starts afresh; undefined when nothing was. */
  take(): StoreChange | undefined {
    const changed = this.internal || this.external;
    this.internal = false;
    this.external = false;
    if (!changed || !this.listening) return undefined;
    const { services, externalServices, externalAddresses, addresses, namespaces, podAddresses } = this;
    // Most are empty, and stay.
    if (services.length > 0) this.services = [];
    if (externalServices.length > 0) this.externalServices = [];
    if (externalAddresses.length > 0) this.externalAddresses = [];
    if (addresses.length > 0) this.addresses = [];
    if (namespaces.length > 0) this.namespaces = [];
    if (podAddresses.length > 0) this.podAddresses = [];
    return {
      services: orNone(services),
      externalServices: orNone(externalServices),
      externalAddresses: orNone(externalAddresses),
      addresses: orNone(addresses),
      namespaces: orNone(namespaces),
      podAddresses: orNone(podAddresses),
    };
  }
}

/** What is handed out must not fill later. */
function orNone<T>(list: readonly T[]): readonly T[] {
  return list.length > 0 ? list : NONE;
}

const NONE: readonly never[] = [];
