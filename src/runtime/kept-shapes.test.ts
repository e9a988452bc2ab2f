import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

/** Says whether a datagram has the layout of what is kept, and a `Buffer` of JavaScript another one. */
const program = `
  import { createSocket } from "node:dgram";
  import { once } from "node:events";
  import { keepShapes } from ${JSON.stringify(new URL("kept-shapes.ts", import.meta.url).href)};
  const [kept] = keepShapes();
  if (kept === undefined) {
    console.log(kept);
    process.exit();
  }
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  socket.send("a", socket.address().port, "127.0.0.1");
  const [datagram] = await once(socket, "message");
  socket.close();
  console.log(%HaveSameMap(kept, datagram), %HaveSameMap(kept, Buffer.allocUnsafeSlow(1)));
`;

function run(environment: NodeJS.ProcessEnv): string {
  const args = ["--allow-natives-syntax", "--input-type=module", "--eval", program];
  return execFileSync(process.execPath, args, {
    encoding: "utf8",
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
  });
}

test("keeps a Buffer as Node's C++ makes it", () => {
  assert.equal(run(process.env), "true false\n");
});

test("keeps nothing in the plain mode", () => {
  assert.equal(run({ ...process.env, PORTOLAN_RUNTIME: "plain" }), "undefined\n");
});
