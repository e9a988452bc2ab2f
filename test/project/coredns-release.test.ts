/**
 * What CoreDNS 1.15.0 has, and which of it this server has: directives, their options, flags and metrics. What is not here stands in the list of
 * the file, with the reason.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { SERVER_FLAGS } from "../../src/cli/flags.ts";
import { encodeMessage, makeQuery, Name, RecordType } from "../../src/dns/index.ts";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";
import { exchangeUdp, queryOctets } from "../support/dns-client.ts";
import { newKeyFiles } from "../support/key-files.ts";
import { Portolan, projectRoot } from "../support/portolan.ts";

interface Release {
  readonly flags: readonly string[];
  /** By directive. */
  readonly options: Readonly<Record<string, readonly string[]>>;
  /** As `/metrics` showed them after {@link QUESTIONS} to the Corefile beside the file. */
  readonly metrics: Readonly<Record<string, { readonly type: string; readonly labels: readonly string[] }>>;
  /** Of plugins that the Corefile does not have, or that had nothing to count. */
  readonly documentedMetrics: readonly string[];
  /** `flag NAME`, `option DIRECTIVE NAME` or `metric NAME` -> why it is not here. */
  readonly lacking: Readonly<Record<string, string>>;
}

const folder = join(projectRoot, "test/fixtures/coredns");
const release: Release = JSON.parse(readFileSync(join(folder, "release.json"), "utf8"));
const lacking = (kind: string): string[] =>
  Object.keys(release.lacking).filter((what) => what.startsWith(`${kind} `));

test("every flag is here, or on the list with its reason", () => {
  const own = SERVER_FLAGS.flatMap(({ names }) => names);
  const missing = release.flags.filter((name) => !own.includes(name)).map((name) => `flag ${name}`);
  assert.deepEqual(missing, lacking("flag"));
});

test("every option of every directive is here, or on the list with its reason", async () => {
  const registry = await PluginRegistry.builtIn();
  const missing: string[] = [];
  for (const [directive, options] of Object.entries(release.options)) {
    const { config } = await registry.definition(directive);
    const own = config.description.options.map(({ name }) => name);
    for (const option of options) if (!own.includes(option)) missing.push(`option ${directive} ${option}`);
  }
  assert.equal(Object.keys(release.options).length, 62);
  assert.deepEqual(missing, lacking("option"));
});

const QUESTIONS: readonly (readonly [name: string, type: number])[] = [
  ["a.forwarded.test.", RecordType.A],
  ["x.grpc.test.", RecordType.A],
  ["y.", RecordType.MX],
  ["y.", RecordType.NAPTR],
  ["y.", RecordType.SSHFP],
  ["x.template.test.", RecordType.A],
  ["x.broken.test.", RecordType.TXT],
  ["host.test.", RecordType.A],
  ["x.signed.test.", RecordType.A],
  ["x.signed.test.", RecordType.A],
  ["localhost.", RecordType.A],
  ["localhost.x.", RecordType.A],
];

test("every metric is here with its type and labels, or on the list with its reason", async () => {
  const corefile = readFileSync(join(folder, "release.corefile"), "utf8");
  const key = newKeyFiles("signed.test.");
  const names = { PORT: "dns", METRICS: "metrics", HEALTH: "health", UPSTREAM: "upstream", HTTPS: "https" };
  await using server = await Portolan.start(
    (port) =>
      Object.entries(names).reduce(
        (text, [word, name]) => text.replaceAll(`{${word}}`, String(port(name))),
        corefile,
      ),
    {
      files: {
        "Ksigned.test.+013+00001.key": key.key,
        "Ksigned.test.+013+00001.private": key.private,
        hosts: "192.0.2.5 host.test\n",
      },
    },
  );
  await Promise.all(QUESTIONS.map(([name, type]) => exchangeUdp(server, signedQuery(name, type), 3_000)));
  const query = Buffer.from(queryOctets("a.test.")).toString("base64url");
  await server.page("https", `/dns-query?dns=${query}`);
  let missing: string[] = [];
  // Some are counted behind the answer, and that of health comes each second.
  for (const deadline = performance.now() + 20_000; performance.now() < deadline; ) {
    const { body } = await server.page("metrics", "/metrics");
    const found = familiesOf(body);
    missing = Object.entries(release.metrics)
      .filter(([name, { type, labels }]) => found.get(name) !== `${type} ${labels.join()}`)
      .map(([name]) => `metric ${name}`);
    if (missing.length === lacking("metric").length) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.deepEqual(missing, lacking("metric"));
});

test("every metric that CoreDNS documents is in a README here", () => {
  const plugins = join(projectRoot, "src/plugins");
  const texts = readdirSync(plugins, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => readFileSync(join(plugins, name, "README.md"), "utf8"));
  const rows = texts.flatMap((text) =>
    Array.from(text.matchAll(/^\| `(coredns_\w+)` \|/gm), ([, name]) => name),
  );
  const all = [...Object.keys(release.metrics), ...release.documentedMetrics];
  assert.deepEqual(
    all.filter((name) => !rows.includes(name)),
    [],
  );
});

/** A query that asks for signatures. */
function signedQuery(name: string, type: number): Uint8Array {
  const edns = { udpSize: 1232, version: 0, dnssecOk: true, options: [] };
  return encodeMessage(makeQuery({ name: Name.parse(name), type }, { id: 1, edns }));
}

/** "type label,label" by name, those of buckets left out. */
function familiesOf(body: string): Map<string, string> {
  const types = new Map<string, string>();
  const labels = new Map<string, Set<string>>();
  for (const line of body.split("\n")) {
    const [, typed = "", type = ""] = /^# TYPE (\S+) (\S+)/.exec(line) ?? [];
    if (typed !== "") types.set(typed, type);
    const [, sample = "", inside = ""] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    const stem = sample.replace(/_(bucket|sum|count)$/, "");
    const name = types.get(stem) === "histogram" ? stem : sample;
    if (name === "") continue;
    const own = labels.get(name) ?? new Set();
    for (const [, label = ""] of inside.matchAll(/(\w+)="/g)) if (label !== "le") own.add(label);
    labels.set(name, own);
  }
  return new Map(Array.from(labels, ([name, own]) => [name, `${types.get(name)} ${[...own].sort().join()}`]));
}
