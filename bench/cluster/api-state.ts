/** The contents of the benchmark's API, encoded once, and their changes. */
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

/** The Service that comes and goes, each time with another address. */
export const APPEARING_SERVICE = { name: "appearing", namespace: namespaceName(0) } as const;
/** Other Services have lower numbers. */
const FIRST_APPEARING = 40_000;

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
  #mixed = 0;
  #appearing = FIRST_APPEARING;
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
    return this.#replacePod(this.#someSlice(), this.#random >>> 0);
  }

  /** A pod somewhere is ready no more, or again: the usual change of a slice. */
  flipSomePod(): ApiEvent {
    const sliceNumber = this.#someSlice();
    const { pods, notReady } = this.#slice(sliceNumber);
    const other = notReady === undefined ? pods[(this.#random >>> 0) % pods.length] : undefined;
    return this.#changeSlice(sliceNumber, { notReady: other });
  }

  /** The slice of some endpoint: a large one is chosen as often as it has endpoints. */
  #someSlice(): number {
    // xorshift: the same slices in each run.
    this.#random ^= this.#random << 13;
    this.#random ^= this.#random >>> 17;
    this.#random ^= this.#random << 5;
    return this.#sliceOfEndpoint[(this.#random >>> 0) % this.#sliceOfEndpoint.length] ?? 0;
  }

  /** A Service or a slice that is no part of the lists comes, changes or goes. */
  changeSomething(): ApiEvent {
    return this.#changes.next(++this.#revision);
  }

  /** In turns {@link changeSomething} and {@link flipSomePod}. */
  changeMixed(): ApiEvent {
    return this.#mixed++ % 2 === 0 ? this.changeSomething() : this.flipSomePod();
  }

  /** {@link APPEARING_SERVICE} comes, with an address of its own. @returns its number, which is in the address */
  appear(): { readonly event: ApiEvent; readonly service: number } {
    const service = ++this.#appearing;
    return { event: this.#appearingEvent("ADDED"), service };
  }

  /** It goes again. */
  disappear(): ApiEvent {
    return this.#appearingEvent("DELETED");
  }

  #appearingEvent(event: ApiEvent["event"]): ApiEvent {
    const revision = ++this.#revision;
    const shape = { ...APPEARING_SERVICE, index: this.#appearing, isHeadless: false, firstPod: 0, pods: 0 };
    return { event, type: SERVICES, revision, object: this.#encoder.service(shape, revision) };
  }

  /** The pod of {@link WATCHED_SERVICE} is replaced. @returns the number of the new pod, which is in its address */
  moveWatched(): { readonly event: ApiEvent; readonly pod: number } {
    const pod = this.#nextPod;
    const at = this.#slices.length - 1;
    return { event: this.#replacePod(at, 0), pod };
  }

  #replacePod(sliceNumber: number, seed: number): ApiEvent {
    const pods = [...this.#slice(sliceNumber).pods];
    pods[seed % pods.length] = this.#nextPod++;
    return this.#changeSlice(sliceNumber, { pods });
  }

  #changeSlice(sliceNumber: number, change: Partial<SliceState>): ApiEvent {
    const changed = { ...this.#slice(sliceNumber), ...change };
    const object = this.#encoder.slice(changed, ++this.#revision);
    this.#slices[sliceNumber] = changed;
    this.#encodedSlices[sliceNumber] = object;
    return { event: "MODIFIED", type: SLICES, revision: this.#revision, object };
  }

  #slice(sliceNumber: number): SliceState {
    const slice = this.#slices[sliceNumber];
    if (slice === undefined) throw new RangeError(`no slice ${sliceNumber}`);
    return slice;
  }

  #encoded(type: ObjectType): readonly Buffer[] {
    if (type === NAMESPACES) return this.#encodedNamespaces;
    return type === SERVICES ? this.#encodedServices : this.#encodedSlices;
  }
}
