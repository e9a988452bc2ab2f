import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, describe, test } from "node:test";
import type { ClusterClients } from "../../plugin/contract/cluster-clients.ts";
import { ExplainError, type ExplainQuestion, type Explanation } from "../../plugin/contract/explanation.ts";
import type { ServerControl } from "../../plugin/contract/site.ts";
import { type HttpHandler, SetupError } from "../../plugin/index.ts";
import { ConfigRefused, PluginTest, until } from "../../plugin/testing.ts";
import explain from "./index.ts";

const EXPLANATION: Explanation = {
  name: "a.",
  type: "A",
  class: "IN",
  client: "127.0.0.1",
  transport: "udp",
  flags: ["rd"],
  server: undefined,
  listener: "dns://:53",
  block: undefined,
  view: undefined,
  steps: [],
  message: undefined,
  plugin: undefined,
  error: undefined,
  milliseconds: 1,
};

const CLUSTER: ClusterClients = {
  domain: "cluster.local",
  keepsPods: false,
  awaited: [],
  isLive: false,
  pod: () => undefined,
  hasNamespace: (namespace) => namespace === "shop",
  readPod: async () => undefined,
};

const servers: Server[] = [];
after(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

interface Response {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: Record<string, unknown>;
}

/** The plugin on a real socket. */
class Endpoint {
  readonly questions: ExplainQuestion[] = [];
  readonly plugin: PluginTest<unknown>;
  clusters: readonly ClusterClients[] = [];
  answer: () => Promise<Explanation> = async () => EXPLANATION;
  port = 0;

  constructor(text = "explain 127.0.0.1:18183") {
    const control: ServerControl = {
      sha512: "",
      readConfiguration: async () => ({ sha512: "" }),
      reload: async () => undefined,
      fatal: () => assert.fail("not to be called"),
      explain: (question) => {
        this.questions.push(question);
        return this.answer();
      },
      clusters: () => this.clusters,
    };
    const handlers = new Map<string, HttpHandler>();
    const http = {
      serve: async (_address: string, path: string, handler: HttpHandler) => {
        handlers.set(path, handler);
        return { host: "127.0.0.1", port: 18183 };
      },
    };
    this.plugin = PluginTest.of(explain, text, { site: { control, http } });
    const server = createServer((incoming, response) =>
      handlers.get(incoming.url ?? "")?.(incoming, response),
    );
    servers.push(server);
    this.#server = server;
  }

  readonly #server: Server;

  async start(): Promise<this> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.port = (this.#server.address() as AddressInfo).port;
    await this.plugin.start();
    return this;
  }

  ask(
    body: string,
    headers: Record<string, string> = {},
    { method = "POST", path = "/explain" } = {},
  ): Promise<Response> {
    const all = { "content-type": "application/json", host: "127.0.0.1:8183", ...headers };
    return new Promise((resolve, reject) => {
      const sent = request({ host: "127.0.0.1", port: this.port, method, path, headers: all }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: JSON.parse(Buffer.concat(chunks).toString()),
          }),
        );
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }
}

test("passes a question to the server, and returns its explanation", async () => {
  const endpoint = await new Endpoint().start();
  const question = {
    name: "Example.org",
    type: "aaaa",
    client: "2001:db8::1",
    transport: "tcp",
    listener: "dns://:53",
    flags: ["cd", "do"],
  };
  const { status, headers, body } = await endpoint.ask(JSON.stringify(question));
  assert.deepEqual([status, body.name], [200, "a."]);
  assert.equal(headers["portolan-explain"], "1");
  assert.equal(headers["cache-control"], "no-store");
  assert.equal(headers["access-control-allow-origin"], undefined);
  assert.deepEqual(endpoint.questions, [
    {
      name: "Example.org.",
      type: 28,
      class: 1,
      transport: "tcp",
      client: "2001:db8::1",
      listener: "dns://:53",
      flags: ["cd", "do"],
    },
  ]);
  assert.deepEqual(endpoint.plugin.log.lines, [
    "[INFO] plugin/explain: every user of this machine can ask http://127.0.0.1:18183/explain about any query",
  ]);
});

describe("keeps out", () => {
  for (const [title, headers, method, status, reason] of [
    [
      "a name that was made to point here",
      { host: "evil.example:8183" },
      "POST",
      403,
      /Host is not a loopback/,
    ],
    ["an address of the network", { host: "10.0.0.1" }, "POST", 403, /Host is not a loopback/],
    ["a web page", { origin: "http://127.0.0.1:8183" }, "POST", 403, /web pages/],
    ["an image in a web page", { "sec-fetch-site": "cross-site" }, "GET", 403, /web pages/],
    ["a form in a web page", { "content-type": "text/plain" }, "POST", 415, /application\/json/],
    ["a GET", {}, "GET", 405, /curl -H/],
  ] as const) {
    test(title, async () => {
      const endpoint = await new Endpoint().start();
      const response = await endpoint.ask('{"name":"a."}', headers, { method });
      assert.equal(response.status, status);
      assert.match(String(response.body.error), reason);
      assert.deepEqual(endpoint.questions, []);
    });
  }

  for (const host of ["localhost:1", "LOCALHOST", "127.0.0.2:8183", "[::1]:8183", "[::1]"]) {
    test(`but not ${host}`, async () => {
      const endpoint = await new Endpoint().start();
      assert.equal((await endpoint.ask('{"name":"a."}', { host })).status, 200);
    });
  }
});

describe("refuses the question", () => {
  for (const [body, reason] of [
    ["", /not valid JSON/],
    ["[]", /not a JSON object/],
    ["{}", /"name" is missing/],
    ['{"name":5}', /"name" is a short text/],
    ['{"name":"a","type":"AA"}', /AA is not a record type/],
    ['{"name":"a","class":"XX"}', /XX is not a class/],
    ['{"name":"a","client":"10.0.0"}', /10\.0\.0 is not an IP address/],
    ['{"name":"a","transport":"tls"}', /"transport" is udp or tcp/],
    ['{"name":"a","flags":["xx"]}', /"flags" may hold rd, ad, cd, do/],
    ['{"name":"a","colour":"red"}', /unknown member "colour"/],
  ] as const) {
    test(body, async () => {
      const response = await (await new Endpoint().start()).ask(body);
      assert.equal(response.status, 400);
      assert.match(String(response.body.error), reason);
    });
  }

  test("that is too long", async () => {
    const response = await (await new Endpoint().start()).ask(`{"name":"${"a".repeat(5_000)}"}`);
    assert.equal(response.status, 413);
  });

  test("that the server cannot answer", async () => {
    const endpoint = await new Endpoint().start();
    endpoint.answer = () => Promise.reject(new ExplainError("the server does not listen yet"));
    const { status, body } = await endpoint.ask('{"name":"a"}');
    assert.deepEqual([status, body], [400, { error: "the server does not listen yet" }]);
  });
});

test("a fault in the server is logged, and does not stop it", async () => {
  const endpoint = await new Endpoint().start();
  endpoint.answer = () => Promise.reject(new TypeError("oops"));
  assert.equal((await endpoint.ask('{"name":"a"}')).status, 500);
  assert.match(endpoint.plugin.log.lines.at(-1) ?? "", /\[ERROR\] plugin\/explain: oops/);
});

test("bounds the questions in progress, and counts all", async () => {
  const endpoint = await new Endpoint().start();
  const { promise, resolve } = Promise.withResolvers<Explanation>();
  endpoint.answer = () => promise;
  const waiting = [1, 2, 3, 4].map(() => endpoint.ask('{"name":"a"}'));
  await until(() => endpoint.questions.length === 4);
  assert.equal((await endpoint.ask('{"name":"a"}')).status, 429);
  resolve(EXPLANATION);
  for (const { status } of await Promise.all(waiting)) assert.equal(status, 200);
  assert.equal((await endpoint.ask('{"name":"a"}')).status, 200);
  const requests = endpoint.plugin.metrics.counter({
    name: "portolan_explain_requests_total",
    help: "same",
    labels: ["status"],
  });
  await until(() => requests.slot("200").value === 5 && requests.slot("429").value === 1);
});

describe("pods", () => {
  const ask = async (clusters: readonly ClusterClients[], namespace = "shop") => {
    const endpoint = new Endpoint();
    endpoint.clusters = clusters;
    await endpoint.start();
    return endpoint.ask(JSON.stringify({ namespace, name: "web" }), {}, { path: "/explain/pod" });
  };

  test("that the server stores are returned with their addresses", async () => {
    const { status, body } = await ask([
      { ...CLUSTER, keepsPods: true, pod: (namespace, name) => [`10.0.0.7/${namespace}/${name}`] },
    ]);
    assert.deepEqual([status, body.domain, body.addresses], [200, "cluster.local", ["10.0.0.7/shop/web"]]);
    assert.match(String(body.assumed), /^dnsPolicy ClusterFirst/);
  });

  test("that it does not store are assumed to exist, if their namespace does", async () => {
    const { status, body } = await ask([CLUSTER]);
    assert.deepEqual([status, body.addresses], [200, []]);
    assert.match(String(body.assumed), /stores no pods without 'pods verified'.*dnsPolicy/);
    assert.match(String((await ask([CLUSTER], "nowhere")).body.error), /has no namespace nowhere/);
  });

  test("that do not exist are not made up", async () => {
    const { status, body } = await ask([{ ...CLUSTER, keepsPods: true }]);
    assert.equal(status, 404);
    assert.match(String(body.error), /has no pod shop\/web that runs/);
    assert.match(String((await ask([])).body.error), /no server block has kubernetes/);
  });
});

describe("configuration", () => {
  for (const [text, code, message] of [
    ["explain :8183", "PLUGIN_BAD_VALUE", /reachable on every address of this machine: it has no password/],
    ["explain 0.0.0.0:8183", "PLUGIN_BAD_VALUE", /0\.0\.0\.0, which is not a loopback address/],
    ["explain [::]:8183", "PLUGIN_BAD_VALUE", /not a loopback address/],
    ["explain 10.0.0.1:8183", "PLUGIN_BAD_VALUE", /answers only on loopback addresses/],
    ["explain example.org:8183", "PLUGIN_BAD_VALUE", /not a loopback address/],
    ["explain 127.0.0.1", "PLUGIN_BAD_VALUE", /is not an address with a port/],
    ["explain 127.0.0.1:1 127.0.0.1:2", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending/],
  ] as const) {
    test(`refuses ${text}`, () => {
      assert.throws(
        () => PluginTest.of(explain, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }

  for (const [text, address] of [
    ["explain", "127.0.0.1:8183"],
    ["explain localhost:1", "127.0.0.1:1"],
    ["explain [::1]:8183", "[::1]:8183"],
    ["explain 127.5.5.5:8183", "127.5.5.5:8183"],
  ] as const) {
    test(`accepts ${text}`, async () => {
      const plugin = PluginTest.of(explain, text);
      await plugin.start();
      assert.deepEqual([...plugin.http.keys()], [`${address}/explain`, `${address}/explain/pod`]);
    });
  }

  test("there is one for the whole server", async () => {
    const shared = new Map<string, unknown>();
    const blocks = ["explain", "explain 127.0.0.1:8183"].map((text) =>
      PluginTest.of(explain, text, { shared }),
    );
    for (const block of blocks) await block.start();
    assert.deepEqual(
      blocks.map(({ http }) => http.size),
      [2, 0],
    );
    assert.throws(
      () => PluginTest.of(explain, "explain 127.0.0.1:8184", { shared }),
      (error) => error instanceof SetupError && /which is already at 127\.0\.0\.1:8183/.test(error.message),
    );
  });
});
