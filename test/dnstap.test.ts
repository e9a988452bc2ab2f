/** `dnstap` read by fstrm_capture, and shown by kdig. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { skipWithout } from "../scripts/lib/system-tools.mjs";
import { ScriptedServer } from "../src/upstream/fixtures/scripted-server.ts";
import { ask } from "./support/dns-client.ts";
import { freePort } from "./support/free-ports.ts";
import { Portolan } from "./support/portolan.ts";

for (const kind of ["unix", "tcp"] as const) {
  test(`fstrm_capture takes what is sent over ${kind}`, { skip: skipWithout("fstrm_capture") }, async () => {
    await using stack = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), "portolan-dnstap-"));
    stack.defer(() => rmSync(folder, { recursive: true, force: true }));
    const upstream = await ScriptedServer.start((asked) =>
      asked.answer({ answer: [`${asked.name} 300 IN A 192.0.2.5`] }),
    );
    stack.defer(() => upstream.stop());
    const path = join(folder, "tap.sock");
    const port = await freePort();
    const file = join(folder, "out.tap");
    const place = kind === "unix" ? ["-u", path] : ["-a", "127.0.0.1", "-p", String(port)];
    const capture = spawn("fstrm_capture", ["-t", "protobuf:dnstap.Dnstap", ...place, "-w", file], {
      stdio: "ignore",
    });
    stack.defer(() => void capture.kill("SIGKILL"));
    const signal = AbortSignal.timeout(10_000);
    while (kind === "unix" ? !existsSync(path) : !(await isListening(port))) {
      signal.throwIfAborted();
      await sleep(20);
    }
    const target = kind === "unix" ? path : `tcp://127.0.0.1:${port}`;
    const server = await Portolan.start(
      (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    dnstap ${target} full {
        identity lighthouse
        extra "{name} {type}"
    }
    forward . ${upstream.address.text}
}
`,
    );
    await using _ = server;
    await ask(server, "tapped.example.org.");
    await server.stop();
    const ended = once(capture, "exit");
    capture.kill("SIGTERM");
    await ended;
    const octets = readFileSync(file);
    const text = octets.toString("latin1");
    assert.match(text, /lighthouse/);
    assert.match(text, /tapped\.example\.org\. A/);
    // The query of the client and its reply, and those of the upstream.
    const types = dataFrames(octets).map(messageType);
    for (const type of [5, 6, 7, 8])
      assert.ok(types.includes(type), `no message of type ${type} among ${types}`);
  });
}

async function isListening(port: number): Promise<boolean> {
  const hex = port.toString(16).toUpperCase().padStart(4, "0");
  return new RegExp(`:${hex} 00000000:0000 0A`).test(readFileSync("/proc/net/tcp", "latin1"));
}

/** Data frames of a file of Frame Streams; control frames are left out. */
function dataFrames(octets: Buffer): Buffer[] {
  const frames: Buffer[] = [];
  for (let at = 0; at < octets.length; ) {
    const length = octets.readUInt32BE(at);
    at += 4;
    if (length === 0) at += 4 + octets.readUInt32BE(at);
    else frames.push(octets.subarray(at, at + length));
    at += length;
  }
  return frames;
}

/** The type of the message in a frame: the first field of its field 14. */
function messageType(frame: Buffer): number | undefined {
  for (let at = 0; at < frame.length; ) {
    const tag = frame[at++] ?? 0;
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const octet = frame[at++] ?? 0;
      length |= (octet & 0x7f) << shift;
      if (octet < 0x80) break;
    }
    if (tag >> 3 === 14) return frame[at + 1];
    if ((tag & 7) === 2) at += length;
  }
  return undefined;
}
