// node bundle.mjs SRC DIST: joins the modules of the sources into a few large ones, without their types. Loading three hundred small ones
// takes 60 ms and 5 MB more.
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { transform } from "esbuild";
import { rolldown } from "rolldown";
import { BUNDLED } from "./bundled-packages.mjs";

const PACKAGES = resolve(import.meta.dirname, "..", "..", "node_modules");

/** What is imported from outside, and what the program imports by a path that it puts together: they keep their places. */
const ENTRIES = [
  "index.ts",
  "{dns,plugin}/index.ts",
  "plugin/testing.ts",
  "cli/main.ts",
  "cli/plugin-command/test-imports.ts",
  "server/threads/thread-main.ts",
  "{transports,upstream}/quic/thread-main.ts",
  "plugins/prometheus/password-thread.ts",
  "plugins/*/index.ts",
];

/** What is loaded together, in `chunks/`; the rest goes where it is needed. */
const CHUNKS = [
  // With what it needs from lib/: whoever imports portolan/dns gets the protocol and no sockets. The first piece is what a resource record needs.
  {
    name: "dns-records",
    holds:
      /^(dns\/(address-runs|fields|name|name-places|numbers|octet-fields|octets|rdata-scanner|record-[\w-]+|resource-record|service-parameters|type-names|wire-[\w-]+)|lib\/(files\/(file-fault|node-modules)|net\/ip-address|text\/(message-of|nearest-word)))\./,
  },
  { name: "dns", holds: /^dns\// },
  // The program without its plugins, in pieces that are loaded in a turn each. Without what only commands and tests import, what serves a scheme
  // that few Corefiles name, what followers (`multisocket`) do without, and what loads it.
  { name: "lib", holds: /^(lib|runtime)\// },
  {
    name: "plugin",
    holds: /^(corefile|plugin(?!\/(testing|facts\/query-environment|config\/source-text)\.?))\//,
  },
  {
    name: "transports",
    holds: /^(transports(?!\/(quic\/|http2\/|https|grpc|http-queries|huffman))\/|quic\/availability\.)/,
  },
  {
    name: "server",
    holds: /^server(?!\/(run\/load-in-turns|serving\/(quic|https3?|grpc)-|offline-|embedded-))\//,
  },
  // With what leads there: few plugins have either language.
  { name: "expression", holds: /^(expression\/|plugin\/(facts\/query-environment|config\/source-text)\.)/ },
  { name: "yaml", holds: /(^|\/)node_modules\/yaml\// },
  { name: "language-server", holds: /(^|\/)node_modules\/vscode-/ },
  { name: "protobuf", holds: /(^|\/)node_modules\/@bufbuild\/protobuf\// },
  { name: "upstream", holds: /^upstream\/(?!(encrypted|http2|quic)\/|(encrypted|grpc)-upstream\.)/ },
  { name: "etcd", holds: /^etcd\// },
  { name: "console", holds: /^console\// },
  { name: "kubernetes-store", holds: /^kubernetes\/(objects|store)\// },
  // Without what needs YAML.
  { name: "kubernetes", holds: /^kubernetes\/(?!api\/|manifests\/parse-documents\.)/ },
];

const [src = "", dist = ""] = process.argv.slice(2).map((path) => resolve(path));

const entries = globSync(ENTRIES, { cwd: src });
const bundle = await rolldown({
  input: Object.fromEntries(entries.map((entry) => [entry.replace(/\.ts$/, ""), join(src, entry)])),
  platform: "node",
  // What a module does not use of a chunk stays out of what it exports.
  preserveEntrySignatures: "allow-extension",
  plugins: [{ name: "packages", resolveId }],
  onLog(_level, { code, message }) {
    // Several schemes build on the module of TLS; those that do not load it late.
    if (code !== "INEFFECTIVE_DYNAMIC_IMPORT") throw new Error(message);
  },
});
const { output } = await bundle
  .write({
    dir: dist,
    format: "es",
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
    generatedCode: { symbols: false },
    hoistTransitiveImports: false,
    codeSplitting: { includeDependenciesRecursively: false, groups: CHUNKS.map(groupOf) },
    minifyInternalExports: false,
  })
  .catch(sayWhy);
refuseCircles(output);
for (const part of output) {
  if (part.type === "chunk") writeFileSync(join(dist, part.fileName), await dense(part.code));
}
writeNotices(output.flatMap((part) => (part.type === "chunk" ? Object.keys(part.modules) : [])));

/**
 * A chunk that imports itself through others may run before what it needs is there.
 * @param {readonly import("rolldown").RolldownOutput["output"][number][]} parts
 */
function refuseCircles(parts) {
  const imports = new Map(parts.map((part) => [part.fileName, part.type === "chunk" ? part.imports : []]));
  /** @type {Set<string>} */
  const done = new Set();
  /** @param {string} file @param {readonly string[]} way */
  const visit = (file, way) => {
    const at = way.indexOf(file);
    if (at >= 0) sayWhy(new Error(`chunks in a circle: ${[...way.slice(at), file].join(" > ")}`));
    if (done.has(file)) return;
    for (const next of imports.get(file) ?? []) visit(next, [...way, file]);
    done.add(file);
  };
  for (const file of imports.keys()) visit(file, []);
}

/**
 * Ends the build. The message has the place of each mistake in the sources.
 * @param {Error} error
 * @returns {never}
 */
function sayWhy({ message }) {
  console.error(message);
  process.exit(1);
}

/**
 * @param {{ name: string, holds: RegExp }} chunk
 * @param {number} index
 */
function groupOf({ name, holds }, index) {
  return {
    name,
    priority: CHUNKS.length - index,
    /** @param {string} id */
    test(id) {
      const path = relative(src, id);
      // An entry in a chunk would take the whole chunk to its own place.
      return !entries.includes(path) && holds.test(path);
    },
  };
}

/**
 * V8 holds the text of each module that it runs, and one character above U+00FF makes it hold all of it with two octets each. Names stay,
 * and lines are short enough for the place in a stack trace to say something.
 * @param {string} text
 */
async function dense(text) {
  const { code } = await transform(text, {
    charset: "ascii",
    format: "esm",
    legalComments: "none",
    lineLimit: 160,
    minifyWhitespace: true,
    target: "esnext",
  });
  return code;
}

/** @param {string} id */
function resolveId(id) {
  if (/^[./]/.test(id)) return undefined;
  const [, name = "", path = ""] = /^((?:@[^/]+\/)?[^/]+)(\/.*)?$/.exec(id) ?? [];
  const bundled = BUNDLED.get(name);
  if (bundled === undefined) return { id, external: true };
  const folder = join(PACKAGES, name);
  const file = bundled.main ?? exportedFile(describePackage(folder), path);
  if (file === undefined) throw new Error(`${name} exports no .${path}`);
  return join(folder, file);
}

/**
 * @param {ReturnType<typeof describePackage>} description
 * @param {string} path
 * @returns {string | undefined}
 */
function exportedFile({ exports, module }, path) {
  if (exports === undefined) return path === "" ? module : undefined;
  const { import: imported, node, default: other } = exports[`.${path}`] ?? {};
  return (typeof imported === "object" ? imported.default : imported) ?? node ?? other;
}

/**
 * @typedef {{ import?: string | { default: string }, node?: string, default?: string }} Conditions
 * @param {string} folder
 * @returns {{ version: string, exports?: Record<string, Conditions>, module?: string }}
 */
function describePackage(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

/**
 * The licences of what became a part of the program ask to go with it.
 * @param {Iterable<string>} files all that became a part of it
 */
function writeNotices(files) {
  const all = [...files];
  const notices = [...BUNDLED].map(([name, { licence }]) => {
    const folder = join(PACKAGES, name);
    const found = [...new Set(all.filter((file) => file.startsWith(folder)).map(copyrightOf))];
    // What goes on about the file.
    const heads = found.filter((head) => !found.some((other) => other !== head && head.startsWith(other)));
    const text = readFileSync(join(PACKAGES, licence), "utf8").replaceAll("\r\n", "\n");
    return [`${name} ${describePackage(folder).version}`, ...heads, text]
      .filter((part) => part !== "")
      .join("\n\n");
  });
  if (!existsSync(dist)) mkdirSync(dist, { recursive: true });
  writeFileSync(join(dist, "NOTICES"), notices.join("\n\n"));
}

/**
 * What stands at the beginning of a file, where it is about rights.
 * @param {string} file
 */
function copyrightOf(file) {
  const [head = ""] = /^(?:\/\/.*\n)+/.exec(readFileSync(file, "utf8")) ?? [];
  return /copyright/i.test(head) ? head.replaceAll(/^\/\/ ?/gm, "").trim() : "";
}
