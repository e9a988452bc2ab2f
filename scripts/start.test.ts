import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { untilTrue } from "../test/support/until-true.ts";
import { makeTree } from "./lib/test-tree.ts";

const project = join(import.meta.dirname, "..");

/** Stands for the server: answers every query with its own bytes, from a moment after the start on. */
const PROGRAM = `
import { createSocket } from "node:dgram";

export async function main(argv: readonly string[]): Promise<number> {
  console.log(\`argv \${JSON.stringify(argv)}\`);
  if (argv.includes("fail")) return 5;
  const socket = createSocket({ type: "udp4", reuseAddr: true });
  socket.on("message", (query, { port, address }) => {
    query.writeUInt16BE(0x8000, 2);
    socket.send(query, port, address);
  });
  return new Promise((resolve) => {
    process.on("SIGTERM", () => {
      socket.close();
      resolve(6);
    });
    socket.bind(Number(argv.at(-1)), "127.0.0.1");
  });
}
`;

const TOUR = {
  console: "http://127.0.0.1:8184/",
  queries: [
    { command: "dig @127.0.0.1 -p PORT web.example", answer: "10.0.0.1\n10.0.0.2", about: "two pods" },
    { command: "dig @127.0.0.1 -p PORT no.example", answer: "NXDOMAIN", about: "none" },
  ],
};

/** A clone of the project in which the packages are installed, with the server's double as its program. */
function makeClone(t: TestContext, port: number): string {
  const copied = ["package.json", "package-lock.json", "tsconfig.json", "tsconfig.build.json", "LICENSE"];
  const root = makeTree(t, {
    ...Object.fromEntries(copied.map((name) => [name, readFileSync(join(project, name), "utf8")])),
    ".npmrc": "",
    "src/cli/main.ts": PROGRAM,
    "examples/quickstart/try.json": JSON.stringify(TOUR).replaceAll("PORT", String(port)),
  });
  for (const folder of ["bin", "scripts"])
    cpSync(join(project, folder), join(root, folder), { recursive: true });
  symlinkSync(join(project, "node_modules"), join(root, "node_modules"));
  return root;
}

function start(root: string, args: readonly string[]) {
  // A process group of its own, so that no terminal is in the foreground.
  const child: ChildProcess = spawn(process.execPath, [join(root, "scripts/start.mjs"), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    child.emit("printed");
  });
  const until = (pattern: RegExp) =>
    untilTrue(() => pattern.test(output), { what: String(pattern), log: () => output });
  return { child, ended: once(child, "close"), until, output: () => output };
}

async function freePort(t: TestContext): Promise<{ port: number; taken: () => void }> {
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  await once(socket, "listening");
  let isOpen = true;
  const close = () => {
    if (isOpen) socket.close();
    isOpen = false;
  };
  t.after(close);
  return { port: socket.address().port, taken: close };
}

test("builds, starts, shows what to try once there are answers, and ends with the server", async (t) => {
  const { port, taken: release } = await freePort(t);
  release();
  const root = makeClone(t, port);
  const first = start(root, [String(port)]);
  await first.until(/Ctrl-C stops it/);
  first.child.kill("SIGTERM");
  assert.deepEqual(await first.ended, [6, null]);
  const lines = first.output().split("\n");
  assert.match(lines[0] ?? "", /^Building dist\/ from src\/ \.\.\. \d+\.\d s$/);
  assert.deepEqual(lines.slice(1), [
    "Starting Portolan with examples/quickstart/Corefile",
    `argv ["-conf","examples/quickstart/Corefile","${port}"]`,
    "",
    "Console: http://127.0.0.1:8184/",
    "",
    `Portolan answers at 127.0.0.1 port ${port}. Try in another terminal:`,
    "",
    `  dig @127.0.0.1 -p ${port} web.example`,
    "      10.0.0.1",
    "      10.0.0.2",
    "      (two pods)",
    "",
    `  dig @127.0.0.1 -p ${port} no.example`,
    "      NXDOMAIN",
    "      (none)",
    "",
    "Ctrl-C stops it.",
    "",
    "",
  ]);

  const second = start(root, ["fail"]);
  assert.deepEqual(await second.ended, [5, null]);
  assert.deepEqual(second.output().split("\n"), [
    "Starting Portolan with examples/quickstart/Corefile",
    'argv ["-conf","examples/quickstart/Corefile","fail"]',
    "",
  ]);
});

test("does not take another server's answer for its own", async (t) => {
  const other = createSocket({ type: "udp4", reuseAddr: true }).bind(0, "127.0.0.1");
  t.after(() => other.close());
  await once(other, "listening");
  let asked = 0;
  other.on("message", () => asked++);
  const { ended, output } = start(makeClone(t, other.address().port), ["fail"]);
  assert.deepEqual(await ended, [5, null]);
  assert.doesNotMatch(output(), /answers at/);
  assert.equal(asked, 0);
});

test("shows errors of the build and where all of them are", async (t) => {
  const root = makeClone(t, 1);
  writeFileSync(join(root, "src/cli/main.ts"), "export const main = ;\n");
  const child = spawn(process.execPath, [join(root, "scripts/start.mjs")], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  assert.deepEqual(await once(child, "close"), [1, null]);
  assert.match(errors, /src\/cli\/main\.ts:1:21/);
  assert.match(errors, /All of its output: \.cache\/build\.log\n$/);
});
