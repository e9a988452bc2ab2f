/**
 * What `rewrite` and `acl` in front of a cached answer cost before any socket is touched, beside the cached answer alone. Run with
 * `node bench/in-process/shaping.ts`.
 */
import { bench, do_not_optimize, run } from "mitata";
import {
  DROPPED,
  type Handler,
  type Next,
  type Outcome,
  type PluginDefinition,
  Query,
} from "../../src/plugin/index.ts";
import { makeTestQuery, PluginTest, records } from "../../src/plugin/testing.ts";
import acl from "../../src/plugins/acl/index.ts";
import cache from "../../src/plugins/cache/index.ts";
import rewrite from "../../src/plugins/rewrite/index.ts";

const NO_OCTETS = new Uint8Array(0);
const NAMES = 1_000;
const NETWORKS = [1, 1_000, 100_000];

const cached = filledCache();
const asked = packets((index) => `service-${index}.namespace.svc.cluster.local.`);
const aliases = packets((index) => `service-${index}.corp.example.com.`);
const [one = NO_OCTETS] = packets(() => "shop.example.com.");
const [alone = NO_OCTETS] = asked;

row("cached", asked, (query) => cached.handle(query, cached.next));
row("cached, one name", [alone], (query) => cached.handle(query, cached.next));
rewriting("rewrite: exact", "rewrite name shop.example.com service-0.namespace.svc.cluster.local", [one]);
rewriting(
  "rewrite: suffix",
  "rewrite name suffix .corp.example.com .namespace.svc.cluster.local answer auto",
  aliases,
);
rewriting(
  "rewrite: regex",
  "rewrite name regex (.*)\\.corp\\.example\\.com\\.$ {1}.namespace.svc.cluster.local answer auto",
  aliases,
);
rewriting("rewrite: exact that does not match", "rewrite name shop.example.com a.test", asked);
rewriting("rewrite: regex that does not match", "rewrite name regex ^shop\\..*\\.com\\.$ a.test", asked);
for (const count of NETWORKS) {
  const handle = handlerOf(acl, `acl {\n block net ${networks(count).join(" ")}\n}`);
  row(`acl: ${count} networks`, asked, (query) =>
    handle(query, (passed) => cached.handle(passed, cached.next)),
  );
}

await run();

function rewriting(title: string, rule: string, queries: readonly Uint8Array[]): void {
  const handle = handlerOf(rewrite, rule);
  row(title, queries, (query) => handle(query, (passed) => cached.handle(passed, cached.next)));
}

function row(
  title: string,
  queries: readonly Uint8Array[],
  answer: (query: Query) => Outcome | Promise<Outcome>,
): void {
  let turn = 0;
  const model = cached.model;
  bench(title, () => {
    turn = turn + 1 >= queries.length ? 0 : turn + 1;
    const packet = queries[turn] ?? alone;
    const query = Query.read(packet, packet.length, model);
    const outcome = query === undefined ? DROPPED : answer(query);
    do_not_optimize(outcome);
    if (outcome instanceof Promise || outcome.kind !== "reply") throw new Error(`${title}: no hit`);
    outcome.release();
  });
}

function handlerOf<T>(definition: PluginDefinition<T>, text: string): Handler {
  const handle = PluginTest.of(definition, text).instances[0]?.handle;
  if (handle === undefined) throw new Error(`${text} handles nothing`);
  return handle;
}

function packets(name: (index: number) => string): Uint8Array[] {
  return Array.from({ length: NAMES }, (_, index) =>
    makeTestQuery({ name: name(index), edns: { udpSize: 1232 } }).packet.slice(),
  );
}

/** Spread over 10.0.0.0/8 and above, never the client's network. */
function networks(count: number): string[] {
  return Array.from(
    { length: count },
    (_, index) => `${10 + (index >> 14)}.${(index >> 6) & 0xff}.${(index & 63) << 2}.0/24`,
  );
}

function filledCache(): { readonly handle: Handler; readonly next: Next; readonly model: Query } {
  const running = PluginTest.of(cache, "cache");
  const handle = running.instances[0]?.handle;
  if (handle === undefined) throw new Error("the cache handles nothing");
  const [answer] = records("a. 3600 IN A 192.0.2.1");
  if (answer === undefined) throw new Error("no record");
  const next: Next = (query) => query.reply({ answer: [{ ...answer, name: query.name }] });
  for (let index = 0; index < NAMES; index++) {
    const name = `service-${index}.namespace.svc.cluster.local.`;
    void handle(makeTestQuery({ name, edns: { udpSize: 1232 } }), next);
  }
  const refuse: Next = () => DROPPED;
  return { handle, next: refuse, model: running.query({ name: "." }) };
}
