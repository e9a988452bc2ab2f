/** Plugins of authors who think of nothing but their own subject: the server sees to what they forget. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseRecord, RecordType } from "../../src/dns/index.ts";
import { createServer } from "../../src/index.ts";
import {
  afterwards,
  bareDirective,
  definePlugin,
  type Handler,
  type PluginDefinition,
  type PluginInstance,
  type Reply,
  type Site,
} from "../../src/plugin/index.ts";

function plugin(name: string, create: (site: Site) => PluginInstance): PluginDefinition<object> {
  return definePlugin({
    name,
    summary: "Is for a test.",
    config: bareDirective(),
    create: (_config, site) => create(site),
  });
}

interface Records {
  readonly begin: (name: string) => void;
  readonly end: (rcode: number) => void;
}

/** Counts and logs before and behind the rest of the chain, whoever asked. */
function careless(makeHandler: (records: Records) => Handler): PluginDefinition<object> {
  return plugin("careless", (site) => {
    const { metrics } = site;
    const sizes = metrics.histogram({ name: "careless_size", help: "Sizes.", buckets: [100] }).slot();
    const slots = {
      begun: metrics.counter({ name: "careless_begun_total", help: "Queries.", labels: [] }).slot(),
      ended: metrics.counter({ name: "careless_ended_total", help: "Replies.", labels: ["rcode"] }),
    };
    return {
      handle: makeHandler({
        begin(name) {
          slots.begun.increment();
          site.log.info(`begins ${name}`);
        },
        end(rcode) {
          slots.ended.slot(`${rcode}`).add(1);
          sizes.observe(50);
          site.log.child("late").warning(`ends with ${rcode}`);
        },
      }),
    };
  });
}

const WAYS: Readonly<Record<string, Parameters<typeof careless>[0]>> = {
  "at once":
    ({ begin, end }) =>
    (query, next) => {
      begin(`${query.name}`);
      const outcome = next(query);
      end(0);
      return outcome;
    },
  "by await":
    ({ begin, end }) =>
    async (query, next) => {
      begin(`${query.name}`);
      const outcome = await next(query);
      end(outcome.kind === "reply" ? outcome.rcode : 2);
      return outcome;
    },
  "by afterwards": ({ begin, end }) =>
    afterwards((outcome, query) => {
      begin(`${query.name}`);
      end(outcome.kind === "reply" ? outcome.rcode : 2);
      return outcome;
    }),
};

/** Answers in a later turn, as an upstream does. */
const late = plugin("late", () => ({
  handle: async (query) => {
    await new Promise((resolve) => setImmediate(resolve));
    return query.reply({ answer: [parseRecord(`${query.name} 30 IN TXT "late"`)] });
  },
}));

describe("a plugin that counts and logs for every query", () => {
  for (const [way, handle] of Object.entries(WAYS)) {
    test(`leaves no mark of a question that explain asks, where it looks at the outcome ${way}`, async () => {
      const lines: string[] = [];
      let site: Site | undefined;
      const asking = plugin("asking", (given) => {
        site = given;
        return {};
      });
      await using server = await createServer({
        corefile: ".:0 {\n bind 127.0.0.1\n asking\n careless\n cache\n late\n}\n",
        plugins: [
          { plugin: asking, before: "cache" },
          { plugin: careless(handle), before: "cache" },
          { plugin: late, after: "cache" },
        ],
        log: (line) => lines.push(line),
      });
      await server.start();
      const ofPlugin = () => lines.filter((line) => line.includes("plugin/careless")).length;
      const counts = async () => (await server.metrics()).match(/^careless_.*$/gm)?.join("\n") ?? "";

      await server.ask({ name: "client.example", type: "TXT", over: "udp" });
      const before = await counts();
      assert.match(before, /^careless_begun_total 1$/m);
      assert.match(before, /^careless_ended_total\{rcode="0"\} 1$/m);
      assert.match(before, /^careless_size_count 1$/m);
      assert.equal(ofPlugin(), 2);

      const explained = await site?.control.explain(
        { name: "explained.example.", type: RecordType.TXT },
        5_000,
      );
      assert.equal(await counts(), before);
      assert.equal(ofPlugin(), 2);
      const notes = JSON.stringify(explained);
      assert.ok(notes.includes("would log: begins explained.example."), notes);
      assert.ok(notes.includes("would log: ends with 0"), notes);

      await server.ask({ name: "client.example", type: "TXT", over: "udp" });
      assert.match(await counts(), /^careless_begun_total 2$/m);
      assert.equal(ofPlugin(), 4);
    });
  }
});

test("a plugin that holds on to replies of the cache never sees those of other queries in them", async () => {
  const held: Reply[] = [];
  const holding = plugin("holding", () => ({
    handle: afterwards((outcome) => {
      if (outcome.kind === "reply") held.push(outcome);
      return outcome;
    }),
  }));
  await using server = await createServer({
    corefile: ".:0 {\n bind 127.0.0.1\n holding\n cache\n late\n}\n",
    plugins: [
      { plugin: holding, before: "cache" },
      { plugin: late, after: "cache" },
    ],
  });
  await server.start();
  const names = ["a.example.", "b.example.", "a.example.", "b.example.", "a.example."];
  for (const name of names) await server.ask({ name, type: "TXT", over: "udp" });
  assert.equal(held.length, names.length);
  assert.ok(held.some(({ answer }) => answer.length > 0));
  for (const [at, reply] of held.entries())
    for (const record of reply.answer) assert.equal(`${record.name}`, names[at]);
});

test("a plugin that counts replies hears later of those that were repeated, and what it throws then stays its own", async () => {
  let seen = 0;
  let told = 0;
  const witnessing = plugin("witnessing", () => ({
    handle: afterwards((outcome) => {
      seen++;
      return outcome;
    }),
    witness: {
      repeated({ times }) {
        told += times;
        throw new Error("broken witness");
      },
    },
  }));
  await using server = await createServer({
    corefile: ".:0 {\n bind 127.0.0.1\n witnessing\n cache\n late\n}\n",
    plugins: [
      { plugin: witnessing, before: "cache" },
      { plugin: late, after: "cache" },
    ],
  });
  await server.start();
  const asked = 20;
  for (let time = 0; time < asked; time++) {
    const { answer } = await server.ask({ name: "a.example.", type: "TXT", over: "udp" });
    assert.equal(answer.length, 1);
  }
  assert.ok(seen < asked, `${seen} of ${asked} queries went through the chain`);
  await waitFor(() => seen + told === asked);
  assert.match(await server.metrics(), /^portolan_plugin_panics_total\{plugin="witnessing"\} [1-9]/m);
});

test("lint knows which zones an added plugin declares, and survives one that cannot read its own directive", async () => {
  const claiming = (name: string, claims: NonNullable<PluginDefinition<object>["claims"]>) => ({
    plugin: { ...plugin(name, () => ({ handle: (query) => query.reply() })), claims },
    before: "cache",
  });
  const warningsOf = async (name: string) => {
    const lines: string[] = [];
    await using server = await createServer({
      corefile: `.:0 {\n bind 127.0.0.1\n ${name}\n whoami\n}\n`,
      plugins: [
        claiming("claiming", () => ({ zones: [] })),
        claiming("broken", () => {
          throw new Error("cannot read it");
        }),
      ],
      log: (line) => lines.push(line),
    });
    await server.start();
    return lines.filter((line) => line.includes("is never reached"));
  };
  assert.equal((await warningsOf("claiming")).length, 1);
  assert.deepEqual(await warningsOf("broken"), []);
});

async function waitFor(done: () => boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!done()) {
    assert.ok(performance.now() < deadline, "it did not come to pass");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
