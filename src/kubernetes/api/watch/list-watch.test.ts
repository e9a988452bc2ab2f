import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CertificateAuthority } from "../../../../test/support/certificates.ts";
import { ApiSimulator } from "../../../../test/support/kubernetes-api/api-simulator.ts";
import type { FaultRule, RequestFacts } from "../../../../test/support/kubernetes-api/faults.ts";
import { Forwarder } from "../../../../test/support/kubernetes-api/forwarder.ts";
import { RESOURCE_TYPES } from "../../../../test/support/kubernetes-api/resource-types.ts";
import { SourceTest } from "../../../../test/support/kubernetes-api/source-test.ts";
import { untilTrue } from "../../../../test/support/until-true.ts";
import { FakeClock } from "../../../lib/time/clock.ts";
import { SharedValues } from "../../objects/shared-values.ts";
import { ClusterStore } from "../../store/store.ts";
import { endpointAccess, NO_TLS } from "../access/access.ts";
import { RESOURCES } from "../client/resource.ts";
import { ListWatch } from "./list-watch.ts";

describe("servers that have never heard of a list as the beginning of a watch", () => {
  it("are asked for pages when they fall silent", async () => {
    await using test = await SourceTest.prepare({
      clock: new FakeClock(),
      simulator: { streamsLists: "unheard of", bookmarkIntervalMs: 3_600_000 },
      source: { timings: { listSilenceMs: 1_000 } },
    });
    test.putService("web");
    test.source.start();
    await test.watching();
    assert.deepEqual(test.services, ["default/web"]);
    assert.deepEqual(test.log.lines, []);
  });

  it("are asked for pages when they never fall silent", async () => {
    await using test = await SourceTest.prepare({
      clock: new FakeClock(),
      kinds: ["services"],
      simulator: { streamsLists: "unheard of", bookmarkIntervalMs: 1 },
      source: { timings: { streamedListMs: 1_000 } },
    });
    test.putService("web");
    test.source.start();
    await test.watching();
    assert.deepEqual(test.services, ["default/web"]);
    assert.match(
      test.log.lines.join("\n"),
      /cannot list services: a list .* has no end: reading it page by page/,
    );
  });

  it("are asked for pages at once where they have Endpoints alone", async () => {
    await using test = await SourceTest.prepare({
      kinds: ["endpoints"],
      simulator: {
        streamsLists: "unheard of",
        types: RESOURCE_TYPES.filter(({ plural }) => plural !== "endpointslices"),
      },
    });
    test.source.start();
    await test.watching();
    assert.deepEqual(
      test.api.requests.map(({ path, parameters }) => `${path} ${parameters.get("watch")}`),
      [
        "/apis/discovery.k8s.io/v1/endpointslices true",
        "/apis/discovery.k8s.io/v1beta1/endpointslices null",
        "/api/v1/endpoints null",
        "/api/v1/endpoints true",
      ],
    );
  });
});

it("says when lists begin and end, those that fail too", async () => {
  const said: string[] = [];
  const begin = () => {
    const list = said.push("begun");
    let isOver = false;
    return () => {
      if (!isOver) said.push(`ended ${list}`);
      isOver = true;
    };
  };
  await using test = await SourceTest.prepare({
    clock: new FakeClock(),
    kinds: ["services"],
    simulator: { streamsLists: "unheard of", bookmarkIntervalMs: 3_600_000 },
    source: { timings: { listSilenceMs: 1_000 }, thrift: { begin } },
  });
  test.source.start();
  await test.watching();
  assert.deepEqual(said, ["begun", "ended 1", "begun", "ended 3"]);
});

const isWatchOf = (resource: string) => {
  return (request: RequestFacts): boolean =>
    request.verb === "watch" && request.resource === resource && !request.parameters.has("sendInitialEvents");
};

/** What was asked about services so far, a word each: `list 0`, `list`, `watch`, `stream`. */
function asked(test: SourceTest): string[] {
  return test.api.requests
    .filter(({ resource }) => resource === "services")
    .map(({ verb, parameters }) => {
      if (parameters.has("sendInitialEvents")) return "stream";
      return verb === "watch" ? "watch" : `list ${parameters.get("resourceVersion") ?? "latest"}`;
    });
}

describe("a revision from which watches do not go on", () => {
  const faults: readonly (readonly [title: string, fault: FaultRule["fault"], expected: RegExp])[] = [
    ["answers of 500", { kind: "status", code: 500 }, /^stream,(watch,){2}stream$/],
    [
      "an error as the first event",
      {
        kind: "answer",
        contentType: "application/json",
        body: '{"type":"ERROR","object":{"kind":"Status","code":500,"reason":"InternalError"}}\n',
      },
      /^stream,(watch,){2}stream$/,
    ],
    ["connections that break", { kind: "cut", afterOctets: 0 }, /^stream,(watch,){2}stream$/],
    ["a refusal", { kind: "status", code: 403 }, /^stream,(watch,){2}stream$/],
  ];
  for (const [title, fault, expected] of faults) {
    it(`is given up after three failures, the loss of a young watch among them: ${title}`, async () => {
      await using test = await SourceTest.start({ clock: new FakeClock(), kinds: ["services"] });
      await test.watching();
      test.api.faults.add({ fault, when: isWatchOf("services"), times: 1_000 });
      test.api.cutConnections();
      if (fault.kind === "cut") test.putService("unheard");
      await test.until(() => asked(test).at(-1) === "stream" && asked(test).length > 1);
      assert.match(asked(test).join(), expected);
      test.api.faults.clear();
      test.putService("late");
      await test.until(() => test.services.includes("default/late"));
    });
  }

  it("is kept while the server is away or overloaded", async () => {
    await using test = await SourceTest.start({ clock: new FakeClock(), kinds: ["services"] });
    await test.watching();
    test.api.faults.add({ fault: { kind: "status", code: 429 }, when: isWatchOf("services"), times: 5 });
    test.api.cutConnections();
    await test.until(() => test.api.faults.pending === 0);
    await test.watching();
    assert.ok(
      asked(test)
        .slice(1)
        .every((each) => each === "watch"),
      asked(test).join(),
    );
  });

  it("is given up when two watches stay silent", async () => {
    const clock = new FakeClock();
    await using test = await SourceTest.start({ clock, kinds: ["services"] });
    await test.watching();
    test.api.faults.add({ fault: { kind: "hang" }, when: isWatchOf("services"), times: 1_000 });
    test.api.cutConnections();
    for (const watches of [1, 2]) {
      await test.until(() => asked(test).filter((each) => each === "watch").length === watches);
      clock.advance(150_000);
    }
    await test.until(() => asked(test).at(-1) === "stream");
    assert.equal(asked(test).join(), "stream,watch,watch,stream");
  });

  it("is forgotten where the server has yet to reach it, and the list asks for the latest state", async () => {
    await using test = await SourceTest.start({
      clock: new FakeClock(),
      kinds: ["services"],
      simulator: { streamsLists: false },
    });
    await test.watching();
    test.api.faults.add({ fault: { kind: "status", code: 504 }, when: isWatchOf("services"), times: 2 });
    test.api.cutConnections();
    await test.until(() => test.api.faults.pending === 0);
    await test.watching();
    assert.equal(asked(test).join(), "stream,list 0,watch,watch,watch,list latest,watch");
  });
});

describe("waits", () => {
  const json = (...events: object[]) => events.map((event) => `${JSON.stringify(event)}\n`).join("");
  const bookmark = (annotations: object = {}) => ({
    type: "BOOKMARK",
    object: { kind: "Service", metadata: { resourceVersion: "7", annotations } },
  });
  const error = { type: "ERROR", object: { kind: "Status", code: 500, reason: "InternalError" } };
  const list = json(bookmark({ "k8s.io/initial-events-end": "true" }));

  /** A server that answers in no time, and a list-watch of services. */
  function start(answer: (path: string) => { body: string; lastsMs?: number } | Error) {
    const clock = new FakeClock();
    const requests: { path: string; at: number }[] = [];
    const loop = new ListWatch({
      resources: RESOURCES.services,
      store: new ClusterStore({ clock, kinds: ["services"] }),
      client: {
        abandonConnections: () => undefined,
        get: async (path) => {
          requests.push({ path, at: clock.now() });
          const given = answer(path);
          if (given instanceof Error) throw given;
          return {
            contentType: "application/json",
            connectionHeardAt: () => undefined,
            body: (async function* () {
              yield Buffer.from(given.body);
              const { lastsMs = 0 } = given;
              if (lastsMs > 0) await new Promise<void>((resolve) => clock.after(lastsMs, resolve));
            })(),
          };
        },
      },
      clock,
      random: () => 0.999,
      reduce: { shared: new SharedValues() },
      labelSelector: "",
      observer: {
        failed: () => undefined,
        readsPages: () => undefined,
        watching: () => undefined,
        unusable: () => undefined,
        changed: () => undefined,
      },
    });
    loop.start();
    return { clock, requests, loop };
  }

  const ends: readonly (readonly [title: string, body: string])[] = [
    ["watches that end at once", json(bookmark())],
    ["watches that end in an error after a good beginning", json(bookmark(), error)],
    ["lists that end in an error after a good beginning", ""],
  ];
  for (const [title, body] of ends) {
    it(`between ${title} grow to half a minute`, async () => {
      const { clock, requests, loop } = start((path) => {
        if (body === "") return path.includes("watch=true") ? { body: json(error) } : new Error("500");
        return { body: path.includes("sendInitialEvents") ? list : body };
      });
      await clock.settle(300_000);
      assert.ok(requests.length <= 20, `${requests.length} requests in 300 s`);
      const waits = requests.slice(-4).map(({ at }, index) => at - (requests.at(index - 5)?.at ?? 0));
      assert.ok(
        waits.every((wait) => wait > 15_000 && wait <= 30_000),
        `${waits}`,
      );
      await loop.stop();
      assert.equal(clock.pendingTimers, 0);
    });
  }

  it("are short again after a minute of health", async () => {
    let lastsMs = 0;
    const { clock, requests, loop } = start((path) => {
      const isList = path.includes("sendInitialEvents");
      return { body: isList ? list : json(bookmark()), lastsMs: isList ? 0 : lastsMs };
    });
    const waitAfter = async (ms: number): Promise<number> => {
      const count = requests.length;
      lastsMs = ms;
      await untilTrue(() => requests.length !== count, { between: () => clock.settle(10) });
      lastsMs = 0;
      await clock.settle(ms);
      const began = requests.at(-1)?.at ?? 0;
      const now = requests.length;
      await untilTrue(() => requests.length !== now, { between: () => clock.settle(10) });
      return (requests.at(-1)?.at ?? 0) - began - ms;
    };
    await clock.settle(200_000);
    assert.ok((await waitAfter(500)) > 15_000);
    assert.ok((await waitAfter(60_000)) < 1_000);
    await loop.stop();
  });
});

describe("lists", () => {
  it("ask for any state at first, as a whole fleet may do at once", async () => {
    await using test = await SourceTest.start({ kinds: ["services"], simulator: { streamsLists: false } });
    await test.watching();
    assert.equal(asked(test).join(), "stream,list 0,watch");
  });

  it("ask for one not older than what is known after failures", async () => {
    await using test = await SourceTest.start({
      clock: new FakeClock(),
      kinds: ["services"],
      simulator: { streamsLists: false },
    });
    await test.watching();
    test.api.faults.add({ fault: { kind: "status", code: 500 }, when: isWatchOf("services"), times: 2 });
    const { revision } = test.api.storage;
    test.api.cutConnections();
    await test.until(() => test.api.faults.pending === 0);
    await test.until(() => asked(test).at(-1) === "watch" && test.api.openWatches === 1);
    const list = test.api.requests.findLast(({ verb }) => verb === "list");
    assert.equal(list?.parameters.get("resourceVersion"), `${revision}`);
    assert.equal(list?.parameters.get("resourceVersionMatch"), "NotOlderThan");
  });

  it("come page by page for ten minutes after a streamed one was too slow", async () => {
    const clock = new FakeClock();
    await using test = await SourceTest.prepare({ clock, kinds: ["services"] });
    test.api.faults.add({ fault: { kind: "hang" } });
    test.source.start();
    await test.until(() => test.api.requests.length === 1);
    clock.advance(30_000);
    await test.watching();
    const relist = async () => {
      const before = test.api.requests.length;
      test.putService("unseen");
      test.api.faults.add({
        fault: {
          kind: "answer",
          contentType: "application/json",
          body: '{"type":"ERROR","object":{"kind":"Status","code":410}}\n',
        },
        when: isWatchOf("services"),
      });
      test.api.cutConnections();
      await test.until(() => test.api.faults.pending === 0 && test.api.requests.length >= before + 2);
      await test.watching();
    };
    await relist();
    assert.equal(asked(test).join(), "stream,list 0,watch,watch,list latest,watch");
    clock.advance(600_000);
    await test.watching();
    await relist();
    assert.equal(asked(test).at(-1), "stream");
  });

  it("come page by page at once from a server whose etcd has no progress of watches, each time", async () => {
    const clock = new FakeClock();
    await using test = await SourceTest.start({
      clock,
      kinds: ["services"],
      simulator: { streamsLists: "without progress" },
    });
    test.putService("web");
    await test.watching();
    assert.equal(asked(test).join(), "stream,list 0,watch");
    assert.deepEqual(test.services, ["default/web"]);
  });

  it("come page by page with one line in the log for all kinds", async () => {
    await using test = await SourceTest.start({ simulator: { streamsLists: "without progress" } });
    await test.watching();
    const lines = test.log.lines.filter((line) => !line.includes("DEBUG"));
    assert.equal(lines.length, 1, lines.join("\n"));
    assert.match(
      lines[0] ?? "",
      /^\[INFO\] reading lists in pages, as the API server does not begin watches with a list: .* 500 /,
    );
  });

  it("are waited for, and not asked for at once, behind a gateway that has no server", async () => {
    const clock = new FakeClock();
    await using test = await SourceTest.prepare({ clock, kinds: ["services"] });
    test.api.faults.add({ fault: { kind: "status", code: 502 }, times: 2 });
    test.source.start();
    await test.until(() => test.log.lines.some((line) => line.includes("WARNING")));
    const [warning = ""] = test.log.lines.filter((line) => line.includes("WARNING"));
    assert.match(warning, /^\[WARNING\] cannot list services: .*502.*; next try in [1-9]/);
  });
});

describe("connections of HTTP/2", () => {
  const authority = new CertificateAuthority();
  const tls = authority.issue({ commonName: "api", hosts: ["127.0.0.1"] });

  async function start(clock: FakeClock, pingIntervalMs: number) {
    const server = await ApiSimulator.start({ tls, http2: true, bookmarkIntervalMs: 3_600_000 });
    const forwarder = await Forwarder.start(server.port);
    const access = {
      ...endpointAccess([`https://127.0.0.1:${forwarder.port}`], undefined, {}),
      tls: { ...NO_TLS, authority: { content: Buffer.from(authority.certificate) } },
    };
    const test = SourceTest.over(server, {
      clock,
      kinds: ["services"],
      access: () => access,
      source: { timings: { pingIntervalMs } },
    });
    test.source.start();
    return { test, forwarder };
  }

  it("whose pings are not answered are closed, and the watch goes on after at most 45 seconds", async () => {
    const clock = new FakeClock();
    const { test, forwarder } = await start(clock, 0);
    await using _ = forwarder;
    await using __ = test;
    await test.watching();
    forwarder.swallow();
    const before = asked(test).length;
    clock.advance(45_000);
    await test.until(() => asked(test).length > before);
    assert.equal(asked(test).join(), "stream,watch");
    assert.ok(clock.now() < 60_000, `${clock.now()}`);
    assert.match(
      test.log.lines.join("\n"),
      /lost the watch on services: .*nothing came for 4\d s, not even answers to pings/,
    );
    test.putService("late");
    await test.until(() => test.services.length === 1);
  });

  it("whose pings are answered carry a watch that has nothing to say, as long as it likes", async () => {
    const clock = new FakeClock();
    const { test, forwarder } = await start(clock, 2);
    await using _ = forwarder;
    await using __ = test;
    await test.watching();
    for (let step = 0; step < 30; step++) {
      const { toClients } = forwarder;
      await test.until(() => forwarder.toClients > toClients);
      clock.advance(10_000);
    }
    assert.equal(asked(test).join(), "stream");
    assert.deepEqual(test.log.lines, []);
    assert.ok((test.store.age("services") ?? 0) >= 299_000, "the data still ages");
    test.api.cutConnections();
    await test.until(() => asked(test).length > 1);
    await test.until(() => (test.store.age("services") ?? Infinity) < 10_000);
  });
});
