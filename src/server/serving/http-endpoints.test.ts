import assert from "node:assert/strict";
import { get } from "node:http";
import { test } from "node:test";
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
  const endpoints = new HttpEndpoints((error) => assert.fail(String(error)));
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
  const endpoints = new HttpEndpoints(() => undefined);
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
  const endpoints = new HttpEndpoints((error) => errors.push(error));
  const prepared = endpoints.prepare();
  const { port } = await prepared.serve("127.0.0.1:0", "/", () => {
    throw new Error("as asked");
  });
  await prepared.commit();
  assert.match(await ask(port, "/"), /^500/);
  assert.equal(errors.length, 1);
  const other = new HttpEndpoints(() => undefined);
  await assert.rejects(
    other.prepare().serve(`127.0.0.1:${port}`, "/", saying("")),
    (error) =>
      error instanceof ListenError && error.code === "EADDRINUSE" && error.message.includes(String(port)),
  );
  await endpoints.closeExcept(new Set());
});
