/** `-log-format json`: an object a line, with the fields that CoreDNS 1.15.0 has. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { type Edns, encodeMessage, makeQuery, Name, RecordType } from "../../src/dns/index.ts";
import { ask, queryOctets, UdpClient } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { Portolan, projectRoot, runPortolan } from "../support/portolan.ts";

type Line = Record<string, unknown>;

const JSON_LOG = ["-log-format", "json"];
const recorded = (file: string): string =>
  readFileSync(join(projectRoot, "test/fixtures/coredns", file), "utf8");

/** @throws where a line is no object */
function linesOf(text: string): Line[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

const edns = (udpSize: number, dnssecOk: boolean): Edns => ({ udpSize, dnssecOk, version: 0, options: [] });
const QUERIES: readonly (readonly [name: string, type: number, edns: Edns | undefined])[] = [
  ['a\\"b\\\\\\009<\\195\\169.refused.test.', RecordType.TXT, undefined],
  ["Upper.refused.test.", RecordType.A, edns(4000, true)],
  ["x.failing.test.", RecordType.AAAA, undefined],
  ["x.silent.test.", RecordType.MX, edns(1232, false)],
];

/** Fields that differ each time get a fixed value. */
function comparable(line: Line): Line {
  const msg = String(line.msg)
    .replaceAll(/127\.0\.0\.1:\d{4,5}/g, "127.0.0.1:PORT")
    .replaceAll(/\.:\d{4,5} on/g, ".:PORT on")
    .replace(/[\d.]+s$/, "SECONDS")
    .replace(/^(CoreDNS|Portolan)-[\s\S]*$/, "BANNER");
  const same = { ...line, time: "TIME", msg };
  // With an OPT record: CoreDNS logs the size without it.
  const size = line.request_size === 47 ? { response_size: "SIZE" } : {};
  if (line.plugin !== "log") return same;
  assert.equal(typeof line.client_port, "number");
  assert.equal(typeof line.duration_seconds, "number");
  assert.equal(typeof line.response_size, "number");
  return { ...same, client_port: "PORT", duration_seconds: "SECONDS", ...size };
}

test("each line has the fields that CoreDNS writes, in its order and with its values", async () => {
  const corefile = recorded("log-format.corefile");
  await using server = await Portolan.start(
    (port) => corefile.replaceAll("{PORT}", `${port("dns")}`).concat(`.:${port("dns")} {\n  whoami\n}\n`),
    { args: JSON_LOG },
  );
  await using client = await UdpClient.connect(server);
  for (const [index, [name, type, options]] of QUERIES.entries()) {
    const start = server.log.length;
    const query = makeQuery(
      { name: Name.parse(name), type },
      { id: 0x1000 + index, ...(options && { edns: options }) },
    );
    client.send(encodeMessage(query));
    await server.waitForLog(/"plugin":"(?:log|errors)"/, start);
  }
  await server.stop();
  const wanted = linesOf(recorded("log-lines.jsonl"));
  const lines = linesOf(server.log.replace(/\.:\d+\\n(?=failing)/, ""));
  for (const line of wanted) {
    const found = lines.find((each) => JSON.stringify(comparable(each)) === JSON.stringify(comparable(line)));
    assert.ok(found, `no line like ${JSON.stringify(line)} among\n${server.log}`);
  }
  for (const { time } of lines) assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/);
  assert.deepEqual(new Set(lines.map(({ level }) => level)), new Set(["ERROR", "INFO", "WARN"]));
});

test("{json} of log writes the objects that it writes in a log of text", async () => {
  await using server = await Portolan.start((port) => `.:${port("dns")} {\n  log . {json}\n  whoami\n}\n`, {
    args: JSON_LOG,
  });
  const start = server.log.length;
  await ask(server, "www.example.");
  await server.waitForLog(/"name":"www\.example\."/, start);
  const line = linesOf(server.log.slice(start)).find(({ name }) => name === "www.example.");
  assert.equal(line?.level, "info");
  assert.equal(line?.msg, undefined);
});

test("all threads, reloads, refused reloads and signals write objects", async () => {
  const corefile = (word: string) => (port: (name: string) => number) =>
    `.:${port("dns")} {\n  log\n  multisocket 3\n  ${word}\n}\n`;
  await using server = await Portolan.start(corefile("whoami"), { args: JSON_LOG });
  for (let each = 0; each < 40; each++) await ask(server, `q${each}.example.`);
  for (const [word, pattern] of [
    ["chaos", /"msg":"Reloading complete"/],
    ["nonsense", /"level":"ERROR","msg":"Restart failed/],
  ] as const) {
    const start = server.log.length;
    server.writeCorefile(corefile(word)(server.portOf));
    server.program.kill("SIGUSR1");
    await server.waitForLog(pattern, start);
  }
  await server.stop();
  const lines = linesOf(server.log);
  const asked = new Set(lines.map(({ qname }) => qname));
  for (let each = 0; each < 40; each++) assert.ok(asked.has(`q${each}.example.`));
  assert.ok(lines.every(({ time, level, msg }) => time && level && typeof msg === "string"));
  assert.equal(server.program.errors, "");
});

test("a plugin that throws in a query and one that throws outside of it write objects", async () => {
  const plugin = `import { definePlugin, directive } from "portolan/plugin";
export default definePlugin({
  name: "bad", summary: "Fails.", config: directive({}),
  create: () => ({ handle() {
    setImmediate(() => { throw new Error("outside\\nof it"); });
    throw new Error("inside\\nof it");
  } }),
});
`;
  await using server = await Portolan.start(
    (port) => `{\n  plugin bad ./bad.ts\n}\n.:${port("dns")} {\n  errors {\n    stacktrace\n  }\n  bad\n}\n`,
    { args: JSON_LOG, files: { "bad.ts": plugin } },
  );
  await using client = await UdpClient.connect(server);
  client.send(queryOctets("www.example."));
  await server.waitForLog(/failed outside a query/);
  await server.waitForLog(/Recovered from panic/);
  const lines = linesOf(server.log.slice(0, server.log.lastIndexOf("\n")));
  assert.ok(lines.some(({ msg }) => /^Recovered from panic.*\n\s+at /s.test(String(msg))));
  const outside = lines.find(({ msg }) => String(msg).startsWith("failed outside a query"));
  assert.deepEqual([outside?.level, outside?.plugin], ["ERROR", "bad"]);
});

for (const [title, files, args] of [
  ["a Corefile with mistakes", { Corefile: "example.org {\n  foo\n  bar\n}\n" }, ["-conf", "Corefile"]],
  ["no Corefile", {}, ["-conf", "nowhere"]],
  ["a plugin list that is not there", {}, ["-plugin-cfg", "nowhere.cfg"]],
] as const) {
  test(`${title}: one object on standard error, and exit code 1`, async (t) => {
    const ending = await runPortolan([...JSON_LOG, ...args], { cwd: makeTree(t, files) });
    const [line, ...others] = linesOf(ending.errors);
    assert.deepEqual([line?.level, Object.keys(line ?? {}), others], ["FATAL", ["time", "level", "msg"], []]);
    const text = await runPortolan([...args], { cwd: makeTree(t, files) });
    assert.equal(`${line?.msg}\n`, text.errors);
    assert.deepEqual([ending.code, ending.output], [1, ""]);
  });
}

test("the commands in place of older programs write objects, too", async (t) => {
  const cwd = makeTree(t, {});
  const port = await freePort();
  for (const args of [
    ["kube-dns", "-kubecfg-file", "nowhere"],
    ["kube2sky", "-kubecfg-file", "nowhere", "-etcd-server", `http://127.0.0.1:${port}`],
    ["istio-coredns", "-kubeconfig", "nowhere"],
    ["exechealthz", "-url", "/a", "-url", "/b"],
    ["dnsmasq-nanny", "-configDir", cwd, "--", "--nonsense"],
    ["sidecar", "-prometheus-addr", "127.0.0.1", "-prometheus-port", "1", "-nonsense-is-text"],
    [
      ...["node-cache", "-localip", "127.0.0.1", "-setupinterface=false", "-setupiptables=false"],
      ...["-metrics-listen-address", `127.0.0.1:${port}`, "-basecorefile", "nowhere", "-corefile", "nowhere"],
    ],
  ] as const) {
    const [command = "", ...rest] = args;
    const { code, errors } = await runPortolan([command, ...JSON_LOG, ...rest], { cwd });
    assert.notEqual(code, 0);
    if (command === "sidecar") assert.match(errors, /^flag provided but not defined: -nonsense-is-text$/m);
    else assert.equal(linesOf(errors).at(-1)?.level, "FATAL", `${command}: ${errors}`);
  }
});

for (const value of ["xml", "JSON", ""]) {
  for (const command of [[], ["node-cache"], ["kube-dns"]]) {
    test(`${["portolan", ...command].join(" ")} refuses the format '${value}' in the words of CoreDNS`, async () => {
      const ending = await runPortolan([...command, `-log-format=${value}`, "-version"]);
      assert.deepEqual(
        [ending.code, ending.output, ending.errors],
        [1, "", `unknown log format "${value}": expected text or json\n`],
      );
    });
  }
}
