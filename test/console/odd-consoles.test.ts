/** `tail` and `doctor` with a server that is not a console: each fails with one line, without control characters. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { describe, test } from "node:test";
import { runPortolan } from "../support/portolan.ts";

function web(listener: RequestListener): Server {
  return createHttpServer((request, response) => {
    response.on("error", () => undefined);
    listener(request, response);
  });
}

const EVIL = { error: "\u001b[31mevil\n\u0007" };

const SERVERS: Readonly<Record<string, readonly [server: () => Server, message: RegExp]>> = {
  "something that speaks no HTTP": [
    () => createServer((socket) => socket.on("error", () => undefined).end("220 ready\r\n")),
    /: does not speak HTTP: is that a console\?$/,
  ],
  "a redirect": [
    (): Server => web((_request, response) => response.writeHead(302, { location: "/" }).end()),
    /: answers with status 302: is that a console\?$/,
  ],
  "a reason that drives a terminal": [
    () => web((_request, response) => response.writeHead(400).end(JSON.stringify(EVIL))),
    /: \\x1b\[31mevil\\n\\x07$/,
  ],
  "an event without end": [
    () =>
      web((_request, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const go = (): void => {
          while (response.write("x".repeat(64 * 1024)));
        };
        response.on("drain", go);
        go();
      }),
    /: answers with too much data: is that a console\?$/,
  ],
};

for (const [title, [make, message]] of Object.entries(SERVERS))
  describe(title, { concurrency: 3 }, () => {
    for (const command of ["tail", "doctor"])
      test(command, async (t) => {
        const server = make();
        server.listen(0, "127.0.0.1");
        await once(server, "listening");
        t.after(() => {
          if ("closeAllConnections" in server) Object(server).closeAllConnections();
          server.close();
        });
        const { port } = Object(server.address()) as AddressInfo;
        const { code, output, errors } = await runPortolan([command, "-server", `127.0.0.1:${port}`]);
        assert.deepEqual([code, output], [2, ""]);
        const [line = "", ...others] = errors.split("\n");
        assert.deepEqual(others, [""]);
        assert.ok(line.startsWith(`-server 127.0.0.1:${port}: `), line);
        assert.match(line, message);
      });
  });
