import assert from "node:assert/strict";
import { get } from "node:http";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { FakeClock, SystemClock } from "../../lib/time/clock.ts";
import { tcpSockets } from "../../transports/tcp-socket.ts";
import { ListenError } from "../../transports/transport.ts";
import { HttpEndpoints } from "./http-endpoints.ts";

function ask(port: number, path: string, host = "127.0.0.1"): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ host, port, path, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(`${response.statusCode} ${text}`));
    }).on("error", reject);
  });
}

const saying =
  (text: string) =>
  (_request: unknown, response: { end(text: string): unknown }): void =>
    void response.end(text);

test("the first configuration answers before it is in force; a second only from then on", async () => {
  const endpoints = new HttpEndpoints({
    clock: new SystemClock(),
    onError: (error) => assert.fail(String(error)),
    tcpSockets,
  });
  const address = "127.0.0.1:0";
  const first = endpoints.prepare();
  const { port } = await first.serve(address, "/health", saying("one"));
  assert.equal(await ask(port, "/health"), "200 one");
  await first.commit();
  const second = endpoints.prepare();
  await second.serve(address, "/health", saying("two"));
  assert.equal(await ask(port, "/health"), "200 one");
  await second.commit();
  assert.equal(await ask(port, "/health?x=1"), "200 two");
  assert.match(await ask(port, "/other"), /^404/);
  await endpoints.closeExcept(new Set());
});

test("a refused configuration leaves no socket behind, and those in force as they were", async () => {
  const endpoints = new HttpEndpoints({ clock: new SystemClock(), onError: () => undefined, tcpSockets });
  const [kept, added] = ["127.0.0.1:0", "127.0.0.2:0"];
  const first = endpoints.prepare();
  const { port } = await first.serve(kept, "/", saying("kept"));
  await first.commit();
  const refused = endpoints.prepare();
  await refused.serve(kept, "/", saying("refused"));
  const { port: addedPort } = await refused.serve(added, "/", saying("refused"));
  await endpoints.rollBack();
  assert.equal(await ask(port, "/"), "200 kept");
  await assert.rejects(ask(addedPort, "/", "127.0.0.2"), /ECONNREFUSED/);
  await endpoints.closeExcept(new Set());
});

test("an address that is taken is an error that names it; a handler that throws is a 500", async () => {
  const errors: unknown[] = [];
  const endpoints = new HttpEndpoints({
    clock: new SystemClock(),
    onError: (error) => errors.push(error),
    tcpSockets,
  });
  const prepared = endpoints.prepare();
  const { port } = await prepared.serve("127.0.0.1:0", "/", () => {
    throw new Error("as asked");
  });
  await prepared.commit();
  assert.match(await ask(port, "/"), /^500/);
  assert.equal(errors.length, 1);
  const other = new HttpEndpoints({ clock: new SystemClock(), onError: () => undefined, tcpSockets });
  await assert.rejects(
    other.prepare().serve(`127.0.0.1:${port}`, "/", saying("")),
    (error) =>
      error instanceof ListenError && error.code === "EADDRINUSE" && error.message.includes(String(port)),
  );
  await endpoints.closeExcept(new Set());
});

test("an address changes from all to one and back, with no port in use and no other program let in", async () => {
  const endpoints = new HttpEndpoints({
    clock: new SystemClock(),
    onError: (error) => assert.fail(String(error)),
    tcpSockets,
  });
  const first = endpoints.prepare();
  const { port } = await first.serve(":0", "/", saying("all"));
  await first.commit();
  // The port that the system chose stands in for one in a Corefile.
  const known = endpoints.prepare();
  await known.serve(`127.0.0.1:${port}`, "/", saying("one"));
  await known.commit();
  assert.equal(await ask(port, "/"), "200 one");
  await assert.rejects(ask(port, "/", "127.0.0.2"), /ECONNREFUSED/);
  const back = endpoints.prepare();
  await back.serve(`:${port}`, "/", saying("all again"));
  await back.commit();
  assert.equal(await ask(port, "/", "127.0.0.2"), "200 all again");
  const stranger = new HttpEndpoints({
    clock: new SystemClock(),
    onError: (error) => assert.fail(String(error)),
    tcpSockets,
  });
  await assert.rejects(stranger.prepare().serve(`127.0.0.1:${port}`, "/", saying("")), ListenError);
  await endpoints.closeExcept(new Set());
});

test("probes succeed beside 300 silent and 300 slow connections", async () => {
  const endpoints = new HttpEndpoints({
    clock: new SystemClock(),
    onError: (error) => assert.fail(String(error)),
    tcpSockets,
  });
  const prepared = endpoints.prepare();
  const { port } = await prepared.serve("127.0.0.1:0", "/health", saying("OK"));
  await prepared.commit();
  const hostile: Socket[] = [];
  for (let n = 0; n < 600; n++) {
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    if (n % 2 === 0) socket.write("GET /health HTTP/1.1\r\nX: ");
    hostile.push(socket);
    if (n % 60 === 59) assert.equal(await ask(port, "/health"), "200 OK");
  }
  for (let n = 0; n < 20; n++) assert.equal(await ask(port, "/health"), "200 OK");
  for (const socket of hostile) socket.destroy();
  await endpoints.closeExcept(new Set());
});

test("an address that is given up answers what is on its way, for a second", async () => {
  const clock = new FakeClock();
  const endpoints = new HttpEndpoints({ clock, onError: (error) => assert.fail(String(error)), tcpSockets });
  const begun: { end(text: string): unknown }[] = [];
  const both = Promise.withResolvers<void>();
  const first = endpoints.prepare();
  const { port } = await first.serve("127.0.0.1:0", "/slow", (_request, response) => {
    if (begun.push(response) === 2) both.resolve();
  });
  await first.commit();
  const asked = [ask(port, "/slow"), ask(port, "/slow")];
  const ended = Promise.allSettled(asked);
  await both.promise;
  await endpoints.prepare().commit();
  await clock.settle(900);
  begun[0]?.end("late");
  assert.equal(await Promise.any(asked), "200 late");
  await clock.settle(100);
  assert.deepEqual((await ended).map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
});
