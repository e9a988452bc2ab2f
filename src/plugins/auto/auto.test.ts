import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { answering, ConfigRefused, PluginTest, records } from "../../plugin/testing.ts";
import auto from "./index.ts";

let folder = "";
let stamp = 1_700_000_000;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portolan-auto-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(name: string, serial: number, address = "192.0.2.1"): void {
  writeRaw(name, `$TTL 60\n@ SOA a. b. ${serial} 2 1 20 1\n@ NS a.\nwww A ${address}\n`);
}

function writeRaw(name: string, text: string): void {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  stamp += 10;
  utimesSync(path, stamp, stamp);
}

function serve(directory = folder, zones = ".") {
  return PluginTest.of(auto, `auto ${zones} {\n directory ${directory}\n reload 1s\n}`);
}

async function rcode(running: ReturnType<typeof serve>, name: string): Promise<number> {
  const outcome = await running.outcome({ name });
  return outcome.kind === "reply" || outcome.kind === "failed" ? outcome.rcode : -1;
}

/** Advances time until the line is logged: a check that is still running when the next one is due replaces it. */
async function look(running: ReturnType<typeof serve>, line: string): Promise<void> {
  const deadline = performance.now() + 5_000;
  while (!running.log.lines.some((logged) => logged.includes(line))) {
    assert.ok(performance.now() < deadline, `"${line}" was not logged`);
    await running.clock.settle(1_000);
  }
}

test("zones appear, change and disappear with their files", async () => {
  write("db.example.org", 1);
  write("sub/db.example.net", 2);
  write("other.txt", 3);
  writeRaw("db.bad.test", "garbage");
  const running = serve();
  await running.start();
  assert.equal(await rcode(running, "www.example.org."), 0);
  assert.equal(await rcode(running, "www.example.net."), 0);
  assert.equal(await rcode(running, "www.bad.test."), 5);
  assert.match(
    running.log.lines.join("\n"),
    /Parse zone `bad\.test\.': failed to parse file .*db\.bad\.test:1:8: text ends/,
  );
  write("db.example.org", 2, "192.0.2.7");
  await look(running, "with 2 SOA serial");
  assert.deepEqual((await running.ask({ name: "www.example.org." })).answer, [
    "www.example.org. 60 IN A 192.0.2.7",
  ]);
  rmSync(join(folder, "sub/db.example.net"));
  await look(running, "Deleting zone `example.net.'");
  assert.equal(await rcode(running, "www.example.net."), 5);
  write("db.bad.test", 9);
  await look(running, "Inserting zone `bad.test.'");
  assert.equal(await rcode(running, "www.bad.test."), 0);
  assert.equal(running.log.lines.filter((line) => line.includes("Parse zone")).length, 1);
  await running.stop();
});

test("the first of two files with one origin is used, and the other when the first is removed", async () => {
  write("a/db.example.org", 1, "192.0.2.1");
  write("b/db.Example.org", 9, "192.0.2.9");
  const running = serve();
  await running.start();
  assert.match(
    running.log.lines.join("\n"),
    /Multiple zone files match origin "Example\.org\.": using ".*a\/db\.example\.org" instead of/,
  );
  assert.deepEqual((await running.ask({ name: "www.example.org." })).answer, [
    "www.example.org. 60 IN A 192.0.2.1",
  ]);
  rmSync(join(folder, "a/db.example.org"));
  await look(running, "Inserting zone `Example.org.'");
  assert.deepEqual((await running.ask({ name: "www.example.org." })).answer, [
    "www.example.org. 60 IN A 192.0.2.9",
  ]);
  await running.stop();
});

test("names outside its zones pass, and an unavailable folder removes no zones", async () => {
  write("db.example.org", 1);
  write("db.example.net", 1);
  const running = serve(folder, "example.org");
  await running.start();
  const next = answering({ answer: records("x. 5 IN A 192.0.2.53") });
  assert.deepEqual((await running.ask({ name: "www.example.net.", next })).answer, ["x. 5 IN A 192.0.2.53"]);
  renameSync(folder, `${folder}-away`);
  await look(running, "Directory does not exist");
  assert.equal(await rcode(running, "www.example.org."), 0);
  renameSync(`${folder}-away`, folder);
  await running.stop();
});

test("the origin follows from groups by number and by name", async () => {
  write("org.example.zone", 1);
  const running = PluginTest.of(
    auto,
    `auto . {\n directory ${folder} (?P<top>\\w+)\\.(\\w+)\\.zone {2}.{top}\n}`,
  );
  await running.start();
  assert.deepEqual((await running.ask({ name: "www.example.org." })).answer, [
    "www.example.org. 60 IN A 192.0.2.1",
  ]);
  await running.stop();
});

for (const [text, message] of [
  ["auto {\n directory\n}", /unexpected line ending after 'directory'/],
  ["auto {\n directory d (.*)\n}", /unexpected line ending after '\(\.\*\)'/],
  ["auto {\n directory d abc {1}\n}", /Need at least one sub expression/],
  ["auto {\n directory d ( {1}\n}", /error parsing regexp: missing closing \)/],
  ["auto {\n directory d (.*) {1} x\n}", /unexpected line ending after 'x'/],
  ["auto {\n reload -1s\n}", /invalid duration/],
  ["auto {\n reload x\n}", /time: invalid duration "x"/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(auto, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("a mounted ConfigMap has each file once: the target folder of its links is not counted again", async () => {
  const put = (version: string, serial: number): void => {
    write(`${version}/db.example.org`, serial, `192.0.2.${serial}`);
    symlinkSync(version, join(folder, "..data.new"));
    renameSync(join(folder, "..data.new"), join(folder, "..data"));
  };
  put("..2026_1", 1);
  symlinkSync("..data/db.example.org", join(folder, "db.example.org"));
  const running = serve();
  await running.start();
  const address = async (): Promise<string[]> => (await running.ask({ name: "www.example.org." })).answer;
  assert.deepEqual(await address(), ["www.example.org. 60 IN A 192.0.2.1"]);
  put("..2026_2", 2);
  rmSync(join(folder, "..2026_1"), { recursive: true });
  await look(running, "with 2 SOA serial");
  assert.deepEqual(await address(), ["www.example.org. 60 IN A 192.0.2.2"]);
  assert.deepEqual(
    running.log.lines.filter((line) => line.includes("Multiple") || line.includes("Deleting")),
    [],
  );
  await running.stop();
});

test("the target folder of a ConfigMap's link is searched instead of the link", async () => {
  write("..2026_1/sub/db.example.org", 1);
  symlinkSync("..2026_1", join(folder, "..data"));
  symlinkSync("..data/sub", join(folder, "sub"));
  const running = serve();
  await running.start();
  assert.equal(await rcode(running, "www.example.org."), 0);
  await running.stop();
});
