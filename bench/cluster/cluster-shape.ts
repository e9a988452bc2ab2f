/** The cluster of the benchmark: which Services it has, and which pods stand behind them. Every run has the same one. */

export interface ClusterSize {
  readonly namespaces: number;
  readonly services: number;
  /** One for each pod. */
  readonly endpoints: number;
  readonly nodes: number;
  /** The most that a slice holds: 100, as the controller fills them. */
  readonly endpointsOfSlice: number;
}

export const FULL_SIZE: ClusterSize = {
  namespaces: 400,
  services: 8_000,
  endpoints: 150_000,
  nodes: 5_000,
  endpointsOfSlice: 100,
};

/** As many Services as the workload `cluster` has. */
export const THOUSAND_SERVICES: ClusterSize = {
  namespaces: 50,
  services: 1_000,
  endpoints: 5_000,
  nodes: 50,
  endpointsOfSlice: 100,
};

/** As large as the cluster of a report about changes beside CoreDNS. */
export const THREE_THOUSAND_SERVICES: ClusterSize = {
  namespaces: 124,
  services: 3_000,
  endpoints: 32_000,
  nodes: 500,
  endpointsOfSlice: 100,
};

/** A cluster of some fifty nodes. */
export const USUAL_SIZE: ClusterSize = {
  namespaces: 40,
  services: 500,
  endpoints: 5_000,
  nodes: 50,
  endpointsOfSlice: 100,
};

export const ZONES: readonly string[] = ["eu-central-1a", "eu-central-1b", "eu-central-1c"];

export interface ServiceShape {
  /** From 0 on. */
  readonly index: number;
  readonly name: string;
  readonly namespace: string;
  readonly isHeadless: boolean;
  /** Its pods are numbered from here on. */
  readonly firstPod: number;
  readonly pods: number;
}

/** Of 80 Services, one has a lot of pods, nine have some and 70 have a few; one in ten is headless. */
const LARGE_EVERY = 80;
const MEDIUM_EVERY = 8;
/** How many times the pods of a small Service each of them has. */
const LARGE_WEIGHT = 140;
const MEDIUM_WEIGHT = 10;
const HEADLESS_EVERY = 10;

/** All Services. Their pods are as many as there are endpoints. */
export function shapeServices(size: ClusterSize): ServiceShape[] {
  const weights = Array.from({ length: size.services }, (_, index) => weightOf(index));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let passed = 0;
  let firstPod = 0;
  return weights.map((weight, index) => {
    passed += weight;
    // Rounded where the running sum is, so that the rounding errors do not add up.
    const end = Math.round((size.endpoints * passed) / total);
    const shape = {
      index,
      name: `${TEAMS[index % TEAMS.length]}-${PARTS[index % PARTS.length]}-${index}`,
      namespace: namespaceName(index % size.namespaces),
      isHeadless: index % HEADLESS_EVERY === 4,
      firstPod,
      pods: end - firstPod,
    };
    firstPod = end;
    return shape;
  });
}

export function namespaceName(index: number): string {
  return `team-${TEAMS[index % TEAMS.length]}-${index}`;
}

/** How many pods each slice of a Service holds. A Service without pods has one empty slice. */
export function sliceSizes(pods: number, endpointsOfSlice: number): number[] {
  const sizes: number[] = [];
  for (let rest = pods; rest > 0; rest -= endpointsOfSlice) sizes.push(Math.min(rest, endpointsOfSlice));
  return sizes.length === 0 ? [0] : sizes;
}

/** As text. A pod keeps its address; there is room for 16 million. */
export function podAddress(pod: number): string {
  return `10.${(pod >>> 16) & 0xff}.${(pod >>> 8) & 0xff}.${pod & 0xff}`;
}

/** As text, from another network than the pods'. */
export function clusterAddress(service: number): string {
  return `172.20.${(service >>> 8) & 0xff}.${service & 0xff}`;
}

/** A pod of a Deployment: the hash of its template, and five letters. */
export function podName(service: ServiceShape, pod: number): string {
  return `${service.name}-${letters((service.index + 1) * 998_244_353, 10)}-${letters((pod * 104_729) % LETTERS_OF_FIVE, 5)}`;
}

export function nodeName(pod: number, nodes: number): string {
  const node = pod % nodes;
  return `ip-10-${node >>> 8}-${node & 0xff}-17.eu-central-1.compute.internal`;
}

export function zoneName(pod: number, nodes: number): string {
  return ZONES[(pod % nodes) % ZONES.length] ?? "";
}

export function uid(kind: number, index: number): string {
  const digits = (index * 2_654_435_761).toString(16).padStart(12, "0").slice(-12);
  return `${(0x3f2a_0000 + kind).toString(16)}-7c1d-4e5b-9a60-${digits}`;
}

function weightOf(index: number): number {
  if (index % LARGE_EVERY === 0) return LARGE_WEIGHT;
  return index % MEDIUM_EVERY === 0 ? MEDIUM_WEIGHT : 1;
}

/** The letters that Kubernetes makes names of: no vowels, so that no word comes about. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
/** It has no factor in common with the number that pods are multiplied by, so no two pods get the same letters. */
const LETTERS_OF_FIVE = 27 ** 5;

/** Different seeds below 27 to the power of `count` have different letters. */
function letters(seed: number, count: number): string {
  let text = "";
  let rest = seed;
  for (let at = 0; at < count; at++) {
    text += ALPHABET[rest % ALPHABET.length];
    rest = Math.floor(rest / ALPHABET.length);
  }
  return text;
}

const TEAMS = ["payments", "search", "media", "identity", "ledger", "basket", "routing", "pricing", "audit"];
const PARTS = ["api", "worker", "cache", "gateway", "scheduler", "store", "ingest"];
