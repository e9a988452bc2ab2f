import assert from "node:assert/strict";
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { afterEach, describe, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { GrpcStatus } from "../../lib/net/grpc-message.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { EtcdClient, rangeBelow } from "./etcd-client.ts";
import { EtcdError } from "./etcd-error.ts";
import { RangeResponseSchema, WatchResponseSchema } from "./etcd-pb.ts";

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

const RANGE = { ...rangeBelow("/skydns"), limit: 10, revision: 0n };
const HEADERS = { ":status": 200, "content-type": "application/grpc" };

type Script = (stream: ServerHttp2Stream, path: string) => void;

/** An HTTP/2 server that handles each stream as the test says. */
async function serve(script: Script): Promise<{ readonly url: string; readonly connections: () => number }> {
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  let connections = 0;
  server.on("session", (session) => {
    connections++;
    sessions.add(session);
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => undefined);
    script(stream, headers[":path"] ?? "");
  });
  const url = await listening(server);
  cleanups.push(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { url, connections: () => connections };
}

function listening(server: Pick<Server, "listen" | "address">): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}

function clientOf(...endpoints: readonly string[]): {
  readonly client: EtcdClient;
  readonly clock: FakeClock;
} {
  const clock = new FakeClock();
  const client = new EtcdClient({ endpoints, clock, timeout: 5_000 });
  cleanups.push(() => client.close());
  return { client, clock };
}

function framed(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

function page(...keys: readonly string[]): Buffer {
  const kvs = keys.map((key) => ({
    key: Buffer.from(key),
    value: Buffer.from("{}"),
    lease: 7n,
    modRevision: 9n,
  }));
  return framed(
    toBinary(RangeResponseSchema, create(RangeResponseSchema, { header: { revision: 9n }, kvs })),
  );
}

/** Responds with these pieces of a body and then a status. */
function respond(stream: ServerHttp2Stream, pieces: readonly Uint8Array[], status = 0, reason = ""): void {
  stream.respond(HEADERS, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status, "grpc-message": reason }));
  for (const piece of pieces) stream.write(piece);
  stream.end();
}

async function failure(call: Promise<unknown>): Promise<EtcdError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof EtcdError, String(error));
  return error;
}

test("a page arrives octet by octet", async () => {
  const paths: string[] = [];
  const { url } = await serve((stream, path) => {
    paths.push(path);
    respond(
      stream,
      [...page("/skydns/a", "/skydns/b")].map((octet) => Uint8Array.of(octet)),
    );
  });
  const { kvs, header } = await clientOf(url).client.range(RANGE);
  assert.deepEqual(
    kvs.map(({ key, lease }) => [Buffer.from(key).toString(), lease]),
    [
      ["/skydns/a", 7n],
      ["/skydns/b", 7n],
    ],
  );
  assert.equal(header?.revision, 9n);
  assert.deepEqual(paths, ["/etcdserverpb.KV/Range"]);
});

describe("a response that is not one of etcd fails the call", () => {
  const cases: readonly (readonly [title: string, script: Script, code: number, reason: RegExp])[] = [
    [
      "HTTP 404",
      (stream) => stream.respond({ ":status": 404 }, { endStream: true }),
      14,
      /HTTP status code .* 404/,
    ],
    ["a web page", (stream) => stream.respond({ "content-type": "text/html" }), 2, /no gRPC server is there/],
    [
      "no protobuf",
      (stream) => respond(stream, [framed(Buffer.from("ff", "hex"))]),
      13,
      /a malformed message/,
    ],
    [
      "compression",
      (stream) => respond(stream, [Buffer.from("0100000000", "hex")]),
      2,
      /compressed or too long/,
    ],
    ["a huge message", (stream) => respond(stream, [Buffer.from("00ffffffff", "hex")]), 2, /too long/],
    ["a status alone", (stream) => respond(stream, [], 7, "permission%20denied"), 7, /: permission denied$/],
    ["a cut stream", (stream) => stream.close(2), 14, /NGHTTP2_INTERNAL_ERROR/],
  ];
  for (const [title, script, code, reason] of cases) {
    test(title, async () => {
      const { url } = await serve(script);
      const error = await failure(clientOf(url).client.range(RANGE));
      assert.equal(error.code, code);
      assert.match(error.message, reason);
      assert.equal(error.endpoint, url);
    });
  }
});

test("the next endpoint is used where the first refuses connections", async () => {
  const closed = createTcpServer();
  const nowhere = await listening(closed);
  await new Promise((resolve) => closed.close(resolve));
  const { url } = await serve((stream) => respond(stream, [page("/skydns/a")]));
  const { client } = clientOf(nowhere, url);
  assert.equal((await client.range(RANGE)).kvs.length, 1);
  assert.equal(client.endpoint, url);
  const { port } = new URL(nowhere);
  const error = await failure(clientOf(nowhere).client.range(RANGE));
  assert.equal(error.message, `${nowhere}: dial tcp 127.0.0.1:${port}: connect: connection refused`);
});

test("a call without an answer ends at its time-out", async () => {
  const asked = Promise.withResolvers<void>();
  const { url } = await serve(() => asked.resolve());
  const { client, clock } = clientOf(url);
  const outcome = failure(client.range(RANGE));
  await asked.promise;
  clock.advance(5_000);
  const error = await outcome;
  assert.equal(error.code, GrpcStatus.DEADLINE_EXCEEDED);
  assert.match(error.message, /no answer within 5000 ms$/);
});

test("calls share a connection, and a server that goes away gets no new ones", async () => {
  const { url, connections } = await serve((stream) => {
    if (connections() === 1) stream.session?.goaway(0);
    respond(stream, [page("/skydns/a")]);
  });
  const { client } = clientOf(url);
  await client.range(RANGE);
  await client.range(RANGE);
  await client.range(RANGE);
  assert.equal(connections(), 2);
});

test("a watch gets several messages of one packet, and ends with its connection", async () => {
  const reply = (revision: bigint): Buffer =>
    framed(toBinary(WatchResponseSchema, create(WatchResponseSchema, { watchId: 1n, header: { revision } })));
  const { url } = await serve((stream) => {
    stream.respond(HEADERS);
    stream.write(Buffer.concat([reply(4n), reply(5n), reply(6n).subarray(0, 3)]));
    stream.write(reply(6n).subarray(3));
  });
  const { client } = clientOf(url);
  const revisions: (bigint | undefined)[] = [];
  const seen = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<EtcdError>();
  await client.watch([{ range: rangeBelow("/skydns"), revision: 3n }], {
    reply: ({ header }) => {
      if (revisions.push(header?.revision) === 3) seen.resolve();
    },
    ended: (error) => ended.resolve(error),
  });
  await seen.promise;
  assert.deepEqual(revisions, [4n, 5n, 6n]);
  client.close();
  assert.match((await ended.promise).message, /the connection ended$/);
});
