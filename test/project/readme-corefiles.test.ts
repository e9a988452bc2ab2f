/** Every Corefile in the pages starts, and every plugin's README has the required sections. */
import assert from "node:assert/strict";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, sep } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { fencedBlocks } from "../../scripts/lib/markdown.ts";
import { nodeHost } from "../../src/corefile/node-host.ts";
import { parseCorefile } from "../../src/corefile/parser.ts";
import { createServer, type EmbeddedServer } from "../../src/index.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import type { PluginDefinition } from "../../src/plugin/contract/define-plugin.ts";
import { BackEnds } from "../support/back-ends.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { freePort } from "../support/free-ports.ts";
import { newKeyFiles } from "../support/key-files.ts";
import { readmeProblems } from "../support/plugin-readme.ts";
import { projectRoot } from "../support/portolan.ts";

const PAGES = ["*.md", "docs/**/*.md", "src/*/README.md", "src/plugins/*/README.md", "examples/**/README.md"];

const pages = globSync(PAGES, { cwd: projectRoot }).sort();

const running: EmbeddedServer[] = [];
// Together: some wait for lame ducks.
after(() => Promise.all(running.map((server) => server.stop())));

for (const page of pages) {
  for (const { language, text, line } of fencedBlocks(readFileSync(join(projectRoot, page), "utf8"))) {
    if (language === "corefile") test(`${page}:${line} starts`, () => start(page, text));
  }
}

for (const folder of globSync("src/plugins/*/", { cwd: projectRoot }).sort()) {
  const plugin = basename(folder);
  const page = join(projectRoot, folder, "README.md");
  test(`the README of ${plugin} has its sections in order`, () => {
    assert.deepEqual(readmeProblems(plugin, readFileSync(page, "utf8")), []);
  });
  test(`the README of ${plugin} names every option`, async () => {
    const url = pathToFileURL(join(projectRoot, folder, "index.ts")).href;
    const { default: definition }: { default: PluginDefinition<unknown> } = await import(url);
    const text = readFileSync(page, "utf8");
    const missing = definition.config.description.options.filter(({ name }) => !text.includes(`\`${name}\``));
    assert.deepEqual(missing, []);
  });
}

const backEnds = new BackEnds();
after(() => backEnds[Symbol.asyncDispose]());

const certificates = mkdtempSync(join(tmpdir(), "portolan-"));
after(() => rmSync(certificates, { recursive: true, force: true }));

/** The files that examples of `tls` name: a pair that fits, and its authority. */
function withCertificates(corefile: string): string {
  if (!/\b(?:cert\.pem|web\.yml)\b/.test(corefile)) return corefile;
  const authority = new CertificateAuthority();
  const { certificate, key } = authority.issue({ commonName: "example.org", hosts: ["127.0.0.1"] });
  const files = {
    "cert.pem": certificate,
    "key.pem": key,
    "ca.pem": authority.certificate,
    "web.yml": WEB_CONFIGURATION,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(certificates, name), text);
  return corefile.replaceAll(/\b(?:(?:cert|key|ca)\.pem|web\.yml)\b/g, (name) => join(certificates, name));
}

/** The zone file that examples of `dynupdate` begin with: unlike `file`, it does not wait for one. */
function withSeed(corefile: string): string {
  if (!/\bdynupdate\b/.test(corefile)) return corefile;
  const path = join(certificates, "db.example.org");
  writeFileSync(path, "$TTL 60\n@ SOA ns1 host 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n");
  return corefile
    .replaceAll(/\bfile db\.example\.org$/gm, `file ${path}`)
    .replaceAll(/\bdatabase \S+$/gm, `database ${path}.database`);
}

/** The output that the README of `prometheus` shows beside its Corefile. */
const WEB_CONFIGURATION =
  "tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_ca_file: ca.pem}";

/** The keys that examples of `dnssec` and `sign` name. */
function withKeys(corefile: string): string {
  return corefile.replaceAll(/\bK([\w.-]+\.)\+013\+\d+/g, (name, owner: string) => {
    const path = join(certificates, name);
    const files = newKeyFiles(owner);
    writeFileSync(`${path}.key`, files.key);
    writeFileSync(`${path}.private`, files.private);
    return path;
  });
}

/** No server is at the addresses of the examples. Whether the network reports that at once depends on the machine. */
const NOBODY_THERE =
  /^\[ERROR\] plugin\/(?:secondary: Failed to transfer \S+ from "\S*192\.0\.2\.|dnstap: No connection to dnstap endpoint )/;

/** Starts what a page shows, on loopback and on ports that are free. */
async function start(page: string, corefile: string): Promise<void> {
  const log = new MemoryLog();
  const server = await createServer({
    corefile: withSeed(
      withKeys(withCertificates(await backEnds.replaceIn(await onFreePorts(onLoopback(corefile))))),
    ),
    // An example's paths are relative to its own folder, those of all other pages to the project's.
    file: join(projectRoot, page.startsWith(`examples${sep}`) ? dirname(page) : "", "Corefile"),
    log,
  });
  await server.start();
  running.push(server);
  assert.ok(server.addresses.length > 0, "listens nowhere");
  const warnings = server.warnings.filter(
    (warning) =>
      // That OpenSSL is old is a matter of the machine.
      !warning.includes("QUIC is served by OpenSSL") &&
      // The page on a directive of former times shows it.
      !(page.includes("federation") && warning.includes("'federation' was removed in CoreDNS 1.7.0")),
  );
  assert.deepEqual(warnings, []);
  assert.deepEqual(
    log.lines.filter((line) => line.startsWith("[ERROR]") && !NOBODY_THERE.test(line)),
    [],
  );
}

/** Only this machine shall reach what an example serves: blocks without `bind` get one. */
function onLoopback(corefile: string): string {
  const { corefile: tree } = parseCorefile(corefile, { file: "Corefile", host: nodeHost, directives: [] });
  const lines = corefile.split("\n");
  for (const { keys, directives } of tree.blocks.toReversed()) {
    const lastKey = keys.at(-1);
    if (lastKey === undefined || directives.some(({ name }) => name.text === "bind")) continue;
    const start = lastKey.span.line - 1;
    assert.match(lines[start] ?? "", / \{$/, "a server block begins with its keys and { in one line");
    lines.splice(start + 1, 0, "bind 127.0.0.1");
  }
  return lines.join("\n").replaceAll(/ :(?=\d{4,5}\b)/g, " 127.0.0.1:");
}

/** Every port of four or five digits is replaced by a free one, the same by the same. */
async function onFreePorts(corefile: string): Promise<string> {
  const ports = new Map<string, number>();
  const numbers = Array.from(corefile.matchAll(/(?<=:)\d{4,5}\b/g), ([port]) => port);
  for (const port of new Set(numbers)) ports.set(port, await freePort());
  return corefile.replaceAll(/(?<=:)\d{4,5}\b/g, (port) => String(ports.get(port)));
}
