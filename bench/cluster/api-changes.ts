/**
 * Services that come, change and go, each with one small slice: what `kubectl create`, `patch` and `delete` make an API server send. They
 * are no part of what it lists.
 */
import { type ApiEvent, type ObjectEncoder, SERVICES, SLICES, type SliceState } from "./api-objects.ts";
import { namespaceName, type ServiceShape } from "./cluster-shape.ts";

/** They take turns at random, so they are at different steps of their lives. */
const CHANGING_SERVICES = 500;
/** A slice has one more than the number of its Service modulo this. */
const MOST_ENDPOINTS = 5;

/** The life of a Service. Two of seven steps create, three patch, two delete. */
const STEPS = [
  "create Service",
  "create slice",
  "replace endpoint",
  "change port",
  "replace endpoint",
  "delete slice",
  "delete Service",
] as const;

interface ChangingService {
  readonly service: ServiceShape;
  /** How many steps it has gone, of all its lives. */
  step: number;
  port: number;
  slice: SliceState;
}

export class ClusterChanges {
  readonly #encoder: ObjectEncoder;
  readonly #services: readonly ChangingService[];
  #nextPod: number;
  #random = 1;

  /** @param firstPod a number from which on no pod has one */
  constructor(encoder: ObjectEncoder, namespaces: number, firstService: number, firstPod: number) {
    this.#encoder = encoder;
    this.#nextPod = firstPod;
    this.#services = changingServices(namespaces, firstService).map((service) => ({
      service,
      step: 0,
      port: FIRST_PORT,
      slice: { service, index: 0, pods: [] },
    }));
  }

  /** The next step in the life of some Service. The same ones in each run. */
  next(revision: number): ApiEvent {
    // xorshift
    this.#random ^= this.#random << 13;
    this.#random ^= this.#random >>> 17;
    this.#random ^= this.#random << 5;
    const changing = this.#services[(this.#random >>> 0) % CHANGING_SERVICES];
    if (changing === undefined) throw new RangeError("no Service");
    const step = STEPS[changing.step++ % STEPS.length] ?? STEPS[0];
    switch (step) {
      case "create Service":
        return this.#ofService("ADDED", changing, revision);
      case "change port":
        changing.port++;
        return this.#ofService("MODIFIED", changing, revision);
      case "delete Service":
        return this.#ofService("DELETED", changing, revision);
      case "create slice": {
        const count = (changing.service.index % MOST_ENDPOINTS) + 1;
        const pods = Array.from({ length: count }, () => this.#nextPod++);
        changing.slice = { ...changing.slice, pods };
        return this.#ofSlice("ADDED", changing, revision);
      }
      case "replace endpoint": {
        const [, ...others] = changing.slice.pods;
        changing.slice = { ...changing.slice, pods: [...others, this.#nextPod++] };
        return this.#ofSlice("MODIFIED", changing, revision);
      }
      case "delete slice":
        return this.#ofSlice("DELETED", changing, revision);
    }
  }

  #ofService(event: ApiEvent["event"], { service, port }: ChangingService, revision: number): ApiEvent {
    return { event, type: SERVICES, revision, object: this.#encoder.service(service, revision, port) };
  }

  #ofSlice(event: ApiEvent["event"], { slice }: ChangingService, revision: number): ApiEvent {
    return { event, type: SLICES, revision, object: this.#encoder.slice(slice, revision) };
  }
}

const FIRST_PORT = 8000;

/** @param firstIndex a number from which on no Service has one */
export function changingServices(namespaces: number, firstIndex: number): ServiceShape[] {
  return Array.from({ length: CHANGING_SERVICES }, (_, at) => ({
    index: firstIndex + at,
    name: `changing-${at}`,
    namespace: namespaceName(at % namespaces),
    isHeadless: at % 10 === 4,
    firstPod: 0,
    pods: 0,
  }));
}
