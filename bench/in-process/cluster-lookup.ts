/**
 * What the first answer to a name of the cluster costs after something changed there, before any socket is touched: from the octets of a
 * query to the written reply. No answer is remembered here, as it would be for later queries. There are 8,000 Services with 150,000 endpoints.
 * With `shared`, they are in memory that another thread may write to, as followers see them. Run with `node bench/in-process/cluster-lookup.ts`.
 */
import { bench, do_not_optimize, group, run } from "mitata";
import { Name, type RecordTypeName } from "../../src/dns/index.ts";
import { ClusterAnswers } from "../../src/kubernetes/answers/cluster-answers.ts";
import type { EndpointGroup, Kind, Port } from "../../src/kubernetes/objects/objects.ts";
import { ClusterStore } from "../../src/kubernetes/store/store.ts";
import { EVERYTHING } from "../../src/kubernetes/store/tables/store-change.ts";
import { SystemClock } from "../../src/lib/time/clock.ts";
import { Fallthrough, Query } from "../../src/plugin/index.ts";
import { makeTestQuery } from "../../src/plugin/testing.ts";
import { KubernetesHandler } from "../../src/plugins/kubernetes/handler.ts";
import { writeReply } from "../../src/server/serving/reply-writer.ts";
import { FULL_SIZE, type ServiceShape, shapeServices } from "../cluster/cluster-shape.ts";

const KINDS: readonly Kind[] = ["namespaces", "services", "endpoints"];
const PORTS: readonly Port[] = [
  { name: "http", number: 80, protocol: "tcp" },
  { name: "metrics", number: 9090, protocol: "tcp" },
];
/** Of the questions of one kind: more than a processor's cache holds, fewer than are remembered. */
const MOST_NAMES = 4_000;
const EVERY_OTHER = 2_654_435_761;

const shapes = shapeServices(FULL_SIZE);
const own = fillStore(shapes);
const follower = new ClusterStore({ clock: new SystemClock(), kinds: KINDS, replica: true });
follower.join(fillStore(shapes).share());
for (const kind of KINDS) follower.markListed(kind);

for (const [title, type, names] of questions(shapes)) {
  group(title, () => {
    benchQuestions(title, own, type, names);
    benchQuestions(`${title}, shared`, follower, type, names);
  });
}
await run();

type Questions = readonly [title: string, type: RecordTypeName, names: readonly string[]];

function questions(all: readonly ServiceShape[]): Questions[] {
  const clustered = all.filter(({ isHeadless }) => !isHeadless);
  const headless = all.filter(({ isHeadless, pods }) => isHeadless && pods >= 3 && pods <= 8);
  const names = clustered.map(domainOf);
  return [
    ["cluster IP", "A", names],
    ["cluster IP, NODATA", "AAAA", names],
    ["SRV", "SRV", names],
    ["headless, 3 to 8 endpoints", "A", headless.map(domainOf)],
    ["headless, SRV", "SRV", headless.map(domainOf)],
    ["endpoint", "A", headless.map((shape) => `${podAddress(shape.firstPod).join("-")}.${domainOf(shape)}`)],
    ["PTR of a service", "PTR", clustered.map(({ index }) => reverseOf(serviceAddress(index)))],
    ["PTR of an endpoint", "PTR", clustered.map(({ firstPod }) => reverseOf(podAddress(firstPod)))],
    ["no such service", "A", names.map((name) => `no-${name}`)],
    ["no such namespace", "A", clustered.map(({ name }) => `${name}.no-${name}.svc.cluster.local.`)],
  ];
}

/** Looks at the answers, too. */
function benchQuestions(
  title: string,
  from: ClusterStore,
  type: RecordTypeName,
  names: readonly string[],
): void {
  const answers = new ClusterAnswers({
    store: from,
    ttl: 5,
    pods: "disabled",
    ignoreEmptyServices: false,
    ownAddresses: () => [],
    zones: ["cluster.local.", "in-addr.arpa.", "ip6.arpa."].map((zone) => Name.parse(zone)),
    zonal: false,
  });
  const handler = new KubernetesHandler(answers, Fallthrough.none);
  const asked = names
    .map((name, index) => ({ name, place: Math.imul(index, EVERY_OTHER) >>> 0 }))
    .sort((left, right) => left.place - right.place)
    .slice(0, MOST_NAMES);
  const packets = asked.map(({ name }) => makeTestQuery({ name, type, edns: { udpSize: 1232 } }).packet);
  const model = makeTestQuery({ name: "." });
  const out = new Uint8Array(65_535);
  const buffers = { buffer: () => out };
  const answer = (packet: Uint8Array): number => {
    handler.forgetAnswers(EVERYTHING);
    const query = Query.read(packet, packet.length, model);
    const reply = query && handler.handle(query, nobody);
    if (query === undefined || reply === undefined || reply instanceof Promise || reply.kind !== "reply")
      throw new Error(`${title}: no reply`);
    const length = writeReply(query, reply, buffers);
    reply.release();
    return length;
  };
  const empty = /NODATA|no such/.test(title);
  for (const packet of packets) {
    answer(packet);
    const answerCount = ((out[6] ?? 0) << 8) | (out[7] ?? 0);
    if ((answerCount === 0) !== empty) throw new Error(`${title}: ${answerCount} records`);
  }
  let turn = 0;
  bench(title, () => {
    turn = turn + 1 < packets.length ? turn + 1 : 0;
    do_not_optimize(answer(packets[turn] ?? new Uint8Array(0)));
  });
}

function fillStore(all: readonly ServiceShape[]): ClusterStore {
  const filled = new ClusterStore({ clock: new SystemClock(), kinds: KINDS });
  for (const name of new Set(all.map(({ namespace }) => namespace)))
    filled.put("namespaces", { namespace: "", name });
  for (const { index, name, namespace, isHeadless, firstPod, pods } of all) {
    filled.put("services", {
      namespace,
      name,
      type: isHeadless ? "headless" : "clusterIP",
      clusterAddresses: isHeadless ? [] : [Uint8Array.from(serviceAddress(index))],
      externalName: "",
      ports: PORTS,
      publishNotReadyAddresses: false,
      externalAddresses: [],
    });
    for (let first = 0; first < pods; first += FULL_SIZE.endpointsOfSlice) {
      const count = Math.min(FULL_SIZE.endpointsOfSlice, pods - first);
      const group: EndpointGroup = {
        addressLength: 4,
        addresses: Uint8Array.from(
          Array.from({ length: count }, (_, pod) => podAddress(firstPod + first + pod)).flat(),
        ),
        count,
        readyCount: count,
        labels: undefined,
        zones: undefined,
        ports: PORTS,
      };
      filled.put("endpoints", { namespace, name: `${name}-${first}`, service: name, groups: [group] });
    }
  }
  for (const kind of KINDS) filled.markListed(kind);
  return filled;
}

function domainOf({ name, namespace }: ServiceShape): string {
  return `${name}.${namespace}.svc.cluster.local.`;
}

function serviceAddress(index: number): number[] {
  return [10, 96, index >> 8, index & 255];
}

function podAddress(pod: number): number[] {
  return [10, 128 + (pod >> 16), (pod >> 8) & 255, pod & 255];
}

function reverseOf(address: readonly number[]): string {
  return `${address.toReversed().join(".")}.in-addr.arpa.`;
}

function nobody(): never {
  throw new Error("nothing was to go on");
}
