/**
 * Services and EndpointSlices out of protobuf, reduced as they are read: most of what happens in a cluster happens to them. What
 * {@link MessageReader} and the functions `reduce…` do in two steps, by way of an object for each message, is done in one here. Only what can be used
 * is read; for anything else `undefined` is returned, and the two steps say what is wrong with it.
 */
import { isDnsLabel } from "../../objects/names.ts";
import type { EndpointSet, Port, Service } from "../../objects/objects.ts";
import {
  MISSING_PORT,
  OLD_PUBLISH_ANNOTATION,
  portOf,
  type ReduceOptions,
  serviceOf,
} from "../../objects/reduce.ts";
import {
  endpointLabel,
  endpointZone,
  GroupPacker,
  SERVICE_NAME_LABEL,
  TRIGGER_TIME,
} from "../../objects/reduce-endpoints.ts";
import { isKeyAmong, type Source } from "./read-message.ts";

/** An object of a watch, with what of it goes elsewhere. */
export interface DirectlyRead<T> {
  readonly object: T;
  readonly revision: string;
  /** What {@link TRIGGER_TIME} says; empty where it is not there. */
  readonly changedAt: string;
}

export interface DirectReader<T> {
  /**
   * @param end behind the object's last octet
   * @returns `undefined` where the object is to be read in two steps; the source is then where it was
   * @throws ProtobufError
   */
  read(source: Source, end: number): DirectlyRead<T> | undefined;
}

/** Fields of kubernetes.proto, as they stand in front of their values: the number times 8, and 2 for what has a length. */
const METADATA = 0x0a;
const NAME = 0x0a;
const NAMESPACE = 0x1a;
const RESOURCE_VERSION = 0x32;
const LABEL = 0x5a;
const ANNOTATION = 0x62;
const KEY = 0x0a;
const VALUE = 0x12;

/** Of one object after the other what is wanted of its metadata. */
class Metadata {
  readonly #label: readonly string[];
  readonly #annotation: readonly string[];
  name = "";
  namespace = "";
  revision = "";
  label = "";
  annotation = "";
  /** How often an object had metadata. */
  times = 0;

  /** @param label the only one that is read; likewise the annotation */
  constructor(label: readonly string[], annotation: readonly string[]) {
    this.#label = label;
    this.#annotation = annotation;
  }

  clear(): void {
    this.name = "";
    this.namespace = "";
    this.revision = "";
    this.label = "";
    this.annotation = "";
    this.times = 0;
  }

  read(source: Source, end: number): void {
    this.times++;
    while (source.at < end) {
      const tag = source.varint();
      switch (tag) {
        case NAME:
          this.name = source.text(end);
          break;
        case NAMESPACE:
          this.namespace = source.text(end);
          break;
        case RESOURCE_VERSION:
          this.revision = source.text(end);
          break;
        case LABEL:
          this.label = readEntry(source, source.length(end), this.#label, this.label);
          break;
        case ANNOTATION:
          this.annotation = readEntry(source, source.length(end), this.#annotation, this.annotation);
          break;
        default:
          source.skip(tag & 7, end);
      }
    }
    source.requireEnd(end);
  }
}

/** @returns the value of the entry if its key is wanted, else `known` */
function readEntry(source: Source, end: number, wanted: readonly string[], known: string): string {
  if (!isKeyAmong(wanted, source, end)) {
    source.at = end;
    return known;
  }
  let key = "";
  let value = "";
  while (source.at < end) {
    const tag = source.varint();
    if (tag === KEY) key = source.text(end);
    else if (tag === VALUE) value = source.text(end);
    else source.skip(tag & 7, end);
  }
  source.requireEnd(end);
  return wanted.includes(key) ? value : known;
}

const PORT_NAME = 0x0a;
const PORT_PROTOCOL = 0x12;
const PORT_NUMBER = 0x18;

/** A port of either kind: those of a slice have the same numbers. */
function readPort(source: Source, end: number, ports: Port[], { shared }: ReduceOptions): void {
  let name = "";
  let protocol = "";
  let number = MISSING_PORT;
  while (source.at < end) {
    const tag = source.varint();
    switch (tag) {
      case PORT_NAME:
        name = source.text(end);
        break;
      case PORT_PROTOCOL:
        protocol = source.text(end);
        break;
      case PORT_NUMBER:
        number = source.varint() | 0;
        break;
      default:
        source.skip(tag & 7, end);
    }
  }
  source.requireEnd(end);
  const port = portOf(number, name, protocol, shared);
  if (port !== undefined) ports.push(port);
}

const ENDPOINT = 0x12;
const SLICE_PORT = 0x1a;
const ADDRESS_TYPE = 0x22;
const ENDPOINT_ADDRESS = 0x0a;
const CONDITIONS = 0x12;
const HOSTNAME = 0x1a;
const TARGET = 0x22;
const ZONE = 0x3a;
const TARGET_KIND = 0x0a;
const TARGET_NAME = 0x1a;
const READY = 0x08;

/** EndpointSlices of this cluster. */
export class SliceReader implements DirectReader<EndpointSet> {
  readonly #options: ReduceOptions;
  readonly #metadata = new Metadata([SERVICE_NAME_LABEL], [TRIGGER_TIME]);
  readonly #packer = new GroupPacker();
  /** Of the endpoint that is being read. */
  #ready = true;
  #podKind = "";
  #podName = "";

  constructor(options: ReduceOptions) {
    this.#options = options;
  }

  read(source: Source, end: number): DirectlyRead<EndpointSet> | undefined {
    const metadata = this.#metadata;
    metadata.clear();
    const { shared } = this.#options;
    const start = source.at;
    const ports: Port[] = [];
    let endpoints = 0;
    let addressType = "";
    while (source.at < end) {
      const tag = source.varint();
      switch (tag) {
        case METADATA:
          metadata.read(source, source.length(end));
          break;
        case ENDPOINT:
          endpoints++;
          source.at = source.length(end);
          break;
        case SLICE_PORT:
          readPort(source, source.length(end), ports, this.#options);
          break;
        case ADDRESS_TYPE:
          addressType = source.text(end);
          break;
        default:
          source.skip(tag & 7, end);
      }
    }
    source.requireEnd(end);
    source.at = start;
    const { name, namespace, label: service } = metadata;
    if (metadata.times !== 1 || name === "" || !isDnsLabel(namespace) || !isDnsLabel(service))
      return undefined;
    const packer = this.#packer;
    packer.begin(endpoints);
    if (addressType !== "FQDN") this.#readEndpoints(source, end, packer);
    source.at = end;
    return {
      object: {
        namespace: shared.text(namespace),
        name,
        service: shared.text(service),
        groups: packer.take(shared.portList(ports)),
      },
      revision: metadata.revision,
      changedAt: metadata.annotation,
    };
  }

  #readEndpoints(source: Source, end: number, packer: GroupPacker): void {
    while (source.at < end) {
      const tag = source.varint();
      if (tag === ENDPOINT) this.#readEndpoint(source, source.length(end), packer);
      else source.skip(tag & 7, end);
    }
  }

  #readEndpoint(source: Source, end: number, packer: GroupPacker): void {
    this.#ready = true;
    this.#podKind = "";
    this.#podName = "";
    let hostname = "";
    let zone = "";
    /** Nearly all have one, of IPv4; -1 where the first one is another. */
    let address = -1;
    let isFirst = true;
    let others: string[] | undefined;
    while (source.at < end) {
      const tag = source.varint();
      switch (tag) {
        case ENDPOINT_ADDRESS:
          if (isFirst) {
            isFirst = false;
            address = source.ipv4(end);
            if (address !== -1) break;
          }
          others ??= [];
          others.push(source.text(end));
          break;
        case CONDITIONS:
          this.#readConditions(source, source.length(end));
          break;
        case HOSTNAME:
          hostname = source.text(end);
          break;
        case TARGET:
          if (this.#options.endpointPodNames) this.#readTarget(source, source.length(end));
          else source.skip(tag & 7, end);
          break;
        case ZONE:
          if (this.#options.zones) zone = source.text(end);
          else source.skip(tag & 7, end);
          break;
        default:
          source.skip(tag & 7, end);
      }
    }
    source.requireEnd(end);
    const label = endpointLabel(hostname, this.#podKind, this.#podName, this.#options);
    const place = endpointZone(zone, this.#options);
    if (address !== -1) packer.addIpv4(address, this.#ready, label, place);
    if (others !== undefined) for (const other of others) packer.add(other, this.#ready, label, place);
  }

  #readConditions(source: Source, end: number): void {
    this.#ready = true;
    while (source.at < end) {
      const tag = source.varint();
      if (tag === READY) this.#ready = source.varint() !== 0;
      else source.skip(tag & 7, end);
    }
    source.requireEnd(end);
  }

  #readTarget(source: Source, end: number): void {
    this.#podKind = "";
    this.#podName = "";
    while (source.at < end) {
      const tag = source.varint();
      if (tag === TARGET_KIND) this.#podKind = source.text(end);
      else if (tag === TARGET_NAME) this.#podName = source.text(end);
      else source.skip(tag & 7, end);
    }
    source.requireEnd(end);
  }
}

const SPEC = 0x12;
const SERVICE_PORT = 0x0a;
const CLUSTER_IP = 0x1a;
const TYPE = 0x22;
const EXTERNAL_NAME = 0x52;
const PUBLISH_NOT_READY = 0x68;
const CLUSTER_IPS = 0x92;

/** Services without their external addresses. */
export class ServiceReader implements DirectReader<Service> {
  readonly #options: ReduceOptions;
  readonly #metadata = new Metadata([], [OLD_PUBLISH_ANNOTATION]);
  /** Of the service that is being read. */
  #ports: Port[] = [];
  #addresses: string[] = [];
  #clusterAddress = "";
  #type = "";
  #externalName = "";
  #publishes = false;

  constructor(options: ReduceOptions) {
    this.#options = options;
  }

  read(source: Source, end: number): DirectlyRead<Service> | undefined {
    const metadata = this.#metadata;
    metadata.clear();
    this.#clear();
    const { shared } = this.#options;
    const start = source.at;
    let specs = 0;
    while (source.at < end) {
      const tag = source.varint();
      switch (tag) {
        case METADATA:
          metadata.read(source, source.length(end));
          break;
        case SPEC:
          specs++;
          this.#readSpec(source, source.length(end));
          break;
        default:
          source.skip(tag & 7, end);
      }
    }
    source.requireEnd(end);
    const { name, namespace } = metadata;
    const isUsual = metadata.times === 1 && specs <= 1 && isDnsLabel(name) && isDnsLabel(namespace);
    const service = isUsual
      ? serviceOf({
          namespace: shared.text(namespace),
          name: shared.text(name),
          type: this.#type,
          clusterAddresses: this.#clusterAddresses,
          externalName: this.#externalName,
          ports: shared.portList(this.#ports),
          publishNotReadyAddresses: this.#publishes || metadata.annotation === "true",
        })
      : undefined;
    if (service === undefined || "problem" in service) {
      source.at = start;
      return undefined;
    }
    return { object: service.object, revision: metadata.revision, changedAt: "" };
  }

  get #clusterAddresses(): readonly string[] {
    if (this.#addresses.length > 0 || this.#clusterAddress === "") return this.#addresses;
    return [this.#clusterAddress];
  }

  #clear(): void {
    // No caller keeps them.
    this.#ports.length = 0;
    this.#addresses.length = 0;
    this.#clusterAddress = "";
    this.#type = "";
    this.#externalName = "";
    this.#publishes = false;
  }

  #readSpec(source: Source, end: number): void {
    while (source.at < end) {
      const tag = source.varint();
      switch (tag) {
        case SERVICE_PORT:
          readPort(source, source.length(end), this.#ports, this.#options);
          break;
        case CLUSTER_IP:
          this.#clusterAddress = source.text(end);
          break;
        case TYPE:
          this.#type = source.text(end);
          break;
        case EXTERNAL_NAME:
          this.#externalName = source.text(end);
          break;
        case PUBLISH_NOT_READY:
          this.#publishes = source.varint() !== 0;
          break;
        case CLUSTER_IPS: {
          const address = source.text(end);
          if (address !== "") this.#addresses.push(address);
          break;
        }
        default:
          source.skip(tag & 7, end);
      }
    }
    source.requireEnd(end);
  }
}
