/** What the API of the benchmark holds, encoded once, and what happens to it. */
import { ClusterChanges } from "./api-changes.ts";
import {
  type ApiEvent,
  NAMESPACES,
  ObjectEncoder,
  type ObjectType,
  PODS,
  SERVICES,
  SLICES,
  type SliceState,
} from "./api-objects.ts";
import {
  type ClusterSize,
  namespaceName,
  type ServiceShape,
  shapeServices,
  sliceSizes,
} from "./cluster-shape.ts";

/** The Service whose one endpoint the benchmark moves about, to see when the answer does. */
export const WATCHED_SERVICE = { name: "watched", namespace: namespaceName(0) } as const;

/** Other pods have lower numbers, also after a long run. */
const FIRST_CHANGING_POD = 8_000_000;

export class ApiState {
  readonly #encoder: ObjectEncoder;
  readonly #services: readonly ServiceShape[];
  readonly #watched: ServiceShape;
  readonly #slices: SliceState[] = [];
  readonly #encodedSlices: Buffer[] = [];
  readonly #encodedServices: readonly Buffer[];
  readonly #encodedNamespaces: readonly Buffer[];
  /** Slices that have endpoints, one number for each: a slice changes as often as it has pods. */
  readonly #sliceOfEndpoint: Uint32Array;
  readonly #changes: ClusterChanges;
  #nextPod: number;
  #revision = 100_000_000;
  #random = 1;

  constructor(size: ClusterSize) {
    const encoder = new ObjectEncoder(size);
    const services = shapeServices(size);
    this.#encoder = encoder;
    this.#nextPod = size.endpoints;
    this.#watched = {
      ...WATCHED_SERVICE,
      index: size.services,
      isHeadless: true,
      firstPod: this.#nextPod++,
      pods: 1,
    };
    this.#services = [...services, this.#watched];
    const sliceOfEndpoint: number[] = [];
    for (const service of this.#services) {
      let pod = service.firstPod;
      for (const [index, count] of sliceSizes(service.pods, size.endpointsOfSlice).entries()) {
        const pods = Array.from({ length: count }, () => pod++);
        if (service !== this.#watched) for (const _ of pods) sliceOfEndpoint.push(this.#slices.length);
        const slice = { service, index, pods };
        this.#slices.push(slice);
        this.#encodedSlices.push(encoder.slice(slice, this.#revision));
      }
    }
    this.#changes = new ClusterChanges(encoder, size.namespaces, size.services + 1, FIRST_CHANGING_POD);
    this.#sliceOfEndpoint = Uint32Array.from(sliceOfEndpoint);
    this.#encodedServices = this.#services.map((service) => encoder.service(service, this.#revision));
    this.#encodedNamespaces = Array.from({ length: size.namespaces }, (_, index) =>
      encoder.namespace(namespaceName(index), index, this.#revision),
    );
  }

  get revision(): number {
    return this.#revision;
  }

  count(type: ObjectType): number {
    if (type === PODS) return this.#services.reduce((sum, { pods }) => sum + pods, 0);
    return this.#encoded(type).length;
  }

  /** The objects from one number to before another. Those of pods are made as they are asked for: there are many. */
  *objects(type: ObjectType, from = 0, to = Number.POSITIVE_INFINITY): Generator<Uint8Array> {
    if (type !== PODS) {
      for (const object of this.#encoded(type).slice(from, to)) yield object;
      return;
    }
    let index = 0;
    for (const service of this.#services) {
      for (let pod = service.firstPod; pod < service.firstPod + service.pods; pod++, index++) {
        if (index >= to) return;
        if (index >= from) yield this.#encoder.pod(service, pod, this.#revision);
      }
    }
  }

  /** A pod somewhere is replaced by another one. */
  replaceSomePod(): ApiEvent {
    // xorshift: the same slices in each run.
    this.#random ^= this.#random << 13;
    this.#random ^= this.#random >>> 17;
    this.#random ^= this.#random << 5;
    const endpoint = (this.#random >>> 0) % this.#sliceOfEndpoint.length;
    return this.#replacePod(this.#sliceOfEndpoint[endpoint] ?? 0, this.#random >>> 0);
  }

  /** A Service or a slice that is no part of the lists comes, changes or goes. */
  changeSomething(): ApiEvent {
    return this.#changes.next(++this.#revision);
  }

  /** The pod of {@link WATCHED_SERVICE} is replaced. @returns the number of the new pod, which is in its address */
  moveWatched(): { readonly event: ApiEvent; readonly pod: number } {
    const pod = this.#nextPod;
    const at = this.#slices.length - 1;
    return { event: this.#replacePod(at, 0), pod };
  }

  #replacePod(sliceNumber: number, seed: number): ApiEvent {
    const slice = this.#slices[sliceNumber];
    if (slice === undefined) throw new RangeError(`no slice ${sliceNumber}`);
    const pods = [...slice.pods];
    pods[seed % pods.length] = this.#nextPod++;
    const changed = { ...slice, pods };
    const object = this.#encoder.slice(changed, ++this.#revision);
    this.#slices[sliceNumber] = changed;
    this.#encodedSlices[sliceNumber] = object;
    return { event: "MODIFIED", type: SLICES, revision: this.#revision, object };
  }

  #encoded(type: ObjectType): readonly Buffer[] {
    if (type === NAMESPACES) return this.#encodedNamespaces;
    return type === SERVICES ? this.#encodedServices : this.#encodedSlices;
  }
}
