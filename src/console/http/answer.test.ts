import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { test } from "node:test";
import { readBody } from "./answer.ts";
import { RequestError } from "./request-error.ts";

test("a request that breaks off is the client's fault", async () => {
  const read = Promise.withResolvers<unknown>();
  const server = createServer((request) => {
    readBody(request).then(read.resolve, read.resolve);
  }).listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
    const address = server.address();
    assert.ok(typeof address === "object" && address !== null);
    const client = connect(address.port, "127.0.0.1").on("error", () => undefined);
    client.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 50\r\n\r\nabc", () => client.destroy());
    const error = await read.promise;
    assert.ok(error instanceof RequestError);
    assert.deepEqual([error.status, error.message], [400, "the request was aborted"]);
  } finally {
    server.close();
  }
});
