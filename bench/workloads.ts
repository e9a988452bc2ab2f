/** The queries and the load of each workload. */
import { CLUSTER_SERVICES, EXTERNAL_ADDRESSES, EXTERNAL_ZONE, externalName, SEARCH_PATH } from "./names.ts";
import { seededRandom } from "./numbers/random.ts";
import { ZipfDistribution } from "./numbers/zipf.ts";
import { shapingWorkloads } from "./shaping-workloads.ts";
import type { Check, Queries, RecordType, Workload } from "./workload.ts";

export type { Beside, Check, LoadShape, Phase, RecordType, Workload } from "./workload.ts";

const DRAWS = 200_000;
/** More than the 1,000 names of most workloads, as an operator leaves it (`cache` takes 9,984 unless told otherwise). */
const USUAL_CACHE = 10_000;

const cached1k = cachedHits(1_000, USUAL_CACHE, 200_000);

export const WORKLOADS: readonly Workload[] = [
  {
    ...cached1k,
    name: "cached-1k",
    title: "Cached hits, 1,000 names",
    about: "UDP, all names in the cache, drawn after Zipf's law",
    load: "udp",
    hasFloor: true,
    besides: [{ server: "unbound" }, { server: "floor" }],
  },
  {
    ...cachedHits(100_000, 200_000, 1_000_000),
    name: "cached-100k",
    title: "Cached hits, 100,000 names",
    about: "UDP, all names in the cache, drawn after Zipf's law",
    load: "udp",
    hasFloor: true,
    besides: [{ server: "unbound" }],
  },
  {
    ...cached1k,
    name: "cached-1k-console",
    title: "Cached hits with the console on",
    about: "UDP, 1,000 cached names drawn after Zipf's law; finished queries are written for the console",
    load: "udp",
    hasFloor: true,
    directives: ["console 127.0.0.1:18184"],
    besides: [{ workload: "cached-1k" }],
  },
  ...shapingWorkloads(cached1k),
  clusterNames(),
  searchPath(),
  forward(),
  cache80(),
  {
    ...cached1k,
    name: "tcp-pipelined",
    title: "TCP, pipelined",
    about: "16 connections, 256 queries under way on all together, 1,000 cached names",
    load: "tcp-pipelined",
    hasFloor: false,
  },
  {
    ...cached1k,
    name: "tcp-one-query",
    title: "TCP, one query a connection",
    about: "32 connections at a time, 1,000 cached names",
    load: "tcp-one-query",
    hasFloor: false,
  },
  {
    ...cached1k,
    name: "dot-pipelined",
    title: "DNS over TLS, pipelined",
    about: "16 connections, 256 queries under way on all together, 1,000 cached names",
    load: "tls-pipelined",
    hasFloor: false,
  },
  {
    ...cached1k,
    name: "doh",
    title: "DNS over HTTPS",
    about:
      "HTTP/2 by GET, at half rate by POST; 16 connections, 256 requests under way on all together, 1,000 cached names",
    load: "https",
    hasFloor: false,
  },
  {
    ...cached1k,
    name: "dot-handshakes",
    title: "DNS over TLS, a handshake for each query",
    about: "32 connections at a time, ECDSA P-256, no session resumed, 1,000 cached names",
    load: "tls-one-query",
    hasFloor: false,
  },
  {
    ...cached1k,
    name: "doq",
    title: "DNS over QUIC",
    about: "8 connections, 128 queries under way on all together, 1,000 cached names",
    load: "quic",
    hasFloor: false,
  },
];

function cachedHits(names: number, cacheEntries: number, draws: number): Queries {
  return {
    cacheEntries,
    usesUpstream: false,
    needsNewNames: false,
    rcodes: ["NOERROR"],
    checks: [externalCheck(externalName(0)), externalCheck(externalName(names - 1))],
    *queries(phase) {
      if (phase === "fill") yield* eachOnce(names);
      else for (const rank of zipfRanks(names, draws)) yield `${externalName(rank)} A`;
    },
  };
}

function clusterNames(): Workload {
  const [first, last] = [CLUSTER_SERVICES.at(0), CLUSTER_SERVICES.at(-1)];
  return {
    name: "cluster",
    title: "Cluster names, no cache",
    about: "UDP, 1,000 Services drawn after Zipf's law; local data for the other servers",
    load: "udp",
    cacheEntries: 0,
    usesUpstream: false,
    needsNewNames: false,
    hasFloor: true,
    rcodes: ["NOERROR"],
    checks: [first, last].flatMap((service) => {
      if (service === undefined) return [];
      const { domain: name, address } = service;
      return [{ name, type: "A", rcode: "NOERROR", addresses: [address] }];
    }),
    *queries(phase) {
      if (phase === "fill") return;
      for (const rank of zipfRanks(CLUSTER_SERVICES.length, DRAWS))
        yield `${CLUSTER_SERVICES[rank]?.domain} A`;
    },
  };
}

function searchPath(): Workload {
  const names = 1_000;
  const [firstSearched = ""] = SEARCH_PATH;
  const walk = (index: number): string[] =>
    [...SEARCH_PATH.map((suffix) => `${externalName(index)}.${suffix}`), externalName(index)].flatMap(
      (name) => [`${name} A`, `${name} AAAA`],
    );
  return {
    name: "search-path",
    title: "NXDOMAIN along a search path",
    about:
      "UDP, 1,000 external names as a pod asks for them: with three search domains of the cluster, then as they are; A and " +
      "AAAA each; with cache",
    load: "udp",
    cacheEntries: USUAL_CACHE,
    usesUpstream: false,
    needsNewNames: false,
    hasFloor: true,
    besides: [{ server: "unbound" }],
    rcodes: ["NOERROR", "NXDOMAIN"],
    checks: [
      externalCheck(externalName(0)),
      externalCheck(externalName(0), "AAAA"),
      { name: `${externalName(0)}.${firstSearched}`, type: "A", rcode: "NXDOMAIN", addresses: [] },
    ],
    *queries(phase) {
      if (phase === "fill") for (let index = 0; index < names; index++) yield* walk(index);
      else for (const rank of zipfRanks(names, DRAWS / 8)) yield* walk(rank);
    },
  };
}

function forward(): Workload {
  return {
    name: "forward",
    title: "Forwarding, no cache",
    about: "UDP, each of 200,000 names in turn, the upstream on the load generator's core",
    load: "udp",
    cacheEntries: 0,
    usesUpstream: true,
    needsNewNames: false,
    hasFloor: false,
    besides: [{ workload: "cached-1k" }],
    rcodes: ["NOERROR"],
    checks: [externalCheck(`checked.${EXTERNAL_ZONE}`)],
    *queries(phase) {
      if (phase === "fill") return;
      for (let index = 0; index < DRAWS; index++) yield `${phase}-${index}.${EXTERNAL_ZONE} A`;
    },
  };
}

/** Hits are names that were queried before the load, misses are new names. */
function cache80(): Workload {
  const names = 1_000;
  const hitShare = 0.8;
  return {
    name: "cache-80",
    title: "Cache with 80 % hits",
    about: "UDP, 1,000 cached names after Zipf's law, and each fifth query for a name never asked for before",
    load: "udp",
    // With room for all that the misses bring, so that none of the hits is pushed out.
    cacheEntries: 1_000_000,
    usesUpstream: true,
    needsNewNames: true,
    hasFloor: false,
    rcodes: ["NOERROR"],
    checks: [externalCheck(externalName(0)), externalCheck(`checked.${EXTERNAL_ZONE}`)],
    *queries(phase, count) {
      if (phase === "fill") {
        yield* eachOnce(names);
        return;
      }
      const isHit = seededRandom(80);
      let index = 0;
      for (const rank of zipfRanks(names, count)) {
        yield isHit() < hitShare ? `${externalName(rank)} A` : `${phase}-${index}.${EXTERNAL_ZONE} A`;
        index++;
      }
    },
  };
}

function* eachOnce(names: number): Iterable<string> {
  for (let index = 0; index < names; index++) yield `${externalName(index)} A`;
}

function* zipfRanks(names: number, draws: number): Iterable<number> {
  const zipf = new ZipfDistribution(names);
  const random = seededRandom(names);
  for (let draw = 0; draw < draws; draw++) yield zipf.rank(random());
}

export function externalCheck(name: string, type: RecordType = "A"): Check {
  return { name, type, rcode: "NOERROR", addresses: [EXTERNAL_ADDRESSES[type]] };
}
