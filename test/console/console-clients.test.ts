/** Clients of the console: behind a relay such as `kubectl port-forward`, over a reload, and far too many. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { SessionView } from "../../src/console/api-types.ts";
import { ask } from "../support/dns-client.ts";
import { Portolan, portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const TOKEN = "a token that is hard to guess";
const OTHER_TOKEN = "another token that is hard to guess";

let server: Portolan;

before(async () => {
  server = await Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console 127.0.0.1:${port("console")} {
        token_file token
    }
    cache 30
    whoami
}
`,
    { files: { token: TOKEN } },
  );
});
after(() => server?.[Symbol.asyncDispose]());

interface Answer {
  readonly status: number;
  readonly body: string;
  readonly cookie: string;
}

/** As a browser at that address sends it. */
async function send(
  origin: { readonly host: string; readonly port: number },
  path: string,
  headers: Readonly<Record<string, string>> = {},
  body?: object,
): Promise<Answer> {
  const sent = request({
    ...{ host: "127.0.0.1", port: origin.port, path, method: body === undefined ? "GET" : "POST" },
    headers: {
      ...{ host: origin.host, "sec-fetch-site": "same-origin" },
      ...(body !== undefined && { origin: `http://${origin.host}`, "content-type": "application/json" }),
      ...headers,
    },
  });
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [response] = await once(sent, "response");
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  const [cookie = ""] = response.headers["set-cookie"] ?? [];
  return { status: response.statusCode, body: Buffer.concat(chunks).toString(), cookie };
}

function own(): { readonly host: string; readonly port: number } {
  const port = server.portOf("console");
  return { host: `127.0.0.1:${port}`, port };
}

const FORGET = "/api/v1/cache/forget";

/** @returns headers that act */
async function signIn(origin = own(), token = TOKEN): Promise<Record<string, string>> {
  const { status, body, cookie } = await send(origin, "/api/v1/session", {}, { token });
  assert.equal(status, 200, body);
  const { csrf }: SessionView = JSON.parse(body);
  return { cookie: cookie.split(";", 1)[0] ?? "", "portolan-csrf": csrf };
}

describe("behind a relay at another port, as kubectl port-forward is one", () => {
  const sockets = new Set<Socket>();
  const relay = createServer((inner) => {
    const outer = connect(server.portOf("console"), "127.0.0.1");
    for (const socket of [inner, outer]) {
      sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
    }
    inner.pipe(outer).pipe(inner);
  });
  let port: number;

  before(async () => {
    relay.listen(0, "127.0.0.1");
    await once(relay, "listening");
    ({ port } = Object(relay.address()) as AddressInfo);
  });
  after(() => {
    relay.close();
    for (const socket of sockets) socket.destroy();
  });

  for (const name of ["localhost", "127.0.0.1", "[::1]"])
    test(`a browser at http://${name}:PORT reads, signs in and acts`, async () => {
      const origin = { host: `${name}:${port}`, port };
      for (const path of ["/", "/app.js", "/api/v1/now", "/api/v1/queries"])
        assert.equal((await send(origin, path)).status, 200, path);
      const session = await signIn(origin);
      assert.match(session.cookie ?? "", new RegExp(`^portolan_session_${port}=`));
      assert.equal((await send(origin, FORGET, session, { name: "a.example." })).status, 200);
    });

  test("a page of another port is another site", async () => {
    const { status } = await send({ host: `localhost:${port}`, port }, "/api/v1/now", {
      origin: `http://localhost:${port + 1}`,
    });
    assert.equal(status, 403);
  });

  test("tail hears the queries, and goes on when the relay cuts it off", async () => {
    await using tail = portolan(["tail", "-server", `localhost:${port}`]);
    const heard = (name: string): Promise<void> =>
      untilTrue(async () => {
        if (!tail.output.includes(name)) await ask(server, name);
        return tail.output.includes(name);
      });
    await heard("before.example.");
    for (const socket of sockets) socket.destroy();
    await heard("after.example.");
    assert.equal(tail.errors, "");
  });
});

describe("a session", () => {
  test("lasts over a reload, and not over one with another token", async () => {
    const session = await signIn();
    await server.reload();
    assert.equal((await send(own(), FORGET, session, { name: "a.example." })).status, 200);
    writeFileSync(join(server.folder, "token"), OTHER_TOKEN);
    await server.reload();
    assert.equal((await send(own(), FORGET, session, { name: "a.example." })).status, 401);
    writeFileSync(join(server.folder, "token"), TOKEN);
    await server.reload();
    assert.equal((await send(own(), FORGET, session, { name: "a.example." })).status, 401);
  });
});

test("a thousand clients that follow get a few places, and everybody else is served", async () => {
  const port = server.portOf("console");
  const clients = Array.from({ length: 1_000 }, () => connect(port, "127.0.0.1"));
  let following = 0;
  let refused = 0;
  let gone = 0;
  for (const client of clients) {
    client.on("error", () => undefined).once("close", () => gone++);
    client.once("data", (chunk: Buffer) => {
      if (chunk.includes(" 200 ")) following++;
      else if (chunk.includes(" 503 ")) refused++;
    });
    client.write(`GET /api/v1/events HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\n\r\n`);
  }
  await untilTrue(async () => following + gone >= clients.length);
  assert.ok(following > 0 && following <= 24, `${following}`);
  assert.ok(refused > 0, "who is refused is told");
  assert.equal((await ask(server, "still.example.")).rcode, 0);
  assert.equal((await send(own(), "/api/v1/now")).status, 200);
  const { status, body } = await send(own(), "/api/v1/events");
  assert.deepEqual([status, /24 streams are open already/.test(body)], [503, true]);
  for (const client of clients) client.destroy();
  await using tail = portolan(["tail", "-server", `127.0.0.1:${port}`, "-count", "1"]);
  await untilTrue(async () => {
    if (tail.output === "") await ask(server, "free.example.");
    return tail.output !== "";
  });
});

test("hundreds that read all there is, or hang up in the middle, keep no other client from an answer", async () => {
  const port = server.portOf("console");
  for (let count = 0; count < 200; count++) await ask(server, `q${count}.example.`);
  const all = Array.from({ length: 150 }, () => send(own(), "/api/v1/queries?rows=1000&name=none"));
  // The body is announced, and does not come.
  for (let count = 0; count < 50; count++) {
    const client = connect(port, "127.0.0.1").on("error", () => undefined);
    client.write(
      `POST /api/v1/explain HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n`,
      () => client.destroy(),
    );
  }
  assert.equal((await ask(server, "between.example.")).rcode, 0);
  for (const { status } of await Promise.all(all)) assert.equal(status, 200);
  // Clients that hung up hold no place.
  await untilTrue(async () => {
    const { status } = await send(own(), "/api/v1/explain", {}, { name: "x.example.", type: "A" });
    return status === 200;
  });
});
