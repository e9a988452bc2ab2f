// node bundle.mjs MODULES DIST: joins the modules that the compiler made into a few large ones. Loading three hundred small ones takes
// 60 ms and 5 MB more.
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, resolve } from "node:path";
import { rollup } from "@rollup/wasm-node";
import { transform } from "esbuild";

/** What is imported from outside, and what the program imports by a path that it puts together: they keep their places. */
const ENTRIES = [
  "index.js",
  "{dns,plugin}/index.js",
  "plugin/testing.js",
  "cli/main.js",
  "cli/plugin-command/test-imports.js",
  "server/threads/thread-main.js",
  "{transports,upstream}/quic/thread-main.js",
  "plugins/prometheus/password-thread.js",
  "plugins/*/index.js",
];

/** What is loaded together, in `chunks/`; the rest goes where it is needed. */
const CHUNKS = [
  // With what it needs from lib/: whoever imports portolan/dns gets the protocol and no sockets.
  { name: "dns", holds: /^(dns\/|lib\/(file-fault|ip-address|nearest-word|node-modules)\.)/ },
  {
    name: "core",
    // Without what serves a scheme that few Corefiles name, what only commands and tests import, and what followers (`multisocket`) do without.
    holds:
      /^((lib|corefile|plugin(?!\/(testing|query-environment|config\/source-text)\.?)|transports(?!\/(quic\/|http2\/|https|grpc|http-queries|huffman))|server(?!\/(lint\/|serving\/(quic|https3?|grpc)-|offline-|embedded-)))\/|quic\/availability\.)/,
  },
  // With what leads there: few plugins have either language.
  { name: "expression", holds: /^(expression\/|plugin\/(query-environment|config\/source-text)\.)/ },
  { name: "yaml", holds: /(^|\/)node_modules\/yaml\// },
  { name: "upstream", holds: /^upstream\/(?!(encrypted|http2|quic)\/)/ },
  { name: "etcd", holds: /^etcd\// },
  { name: "console", holds: /^console\// },
  // Without what needs YAML.
  { name: "kubernetes", holds: /^kubernetes\/(?!api\/|manifests\/parse-documents\.)/ },
];

/** Packages that become a part of the program: of many small files, and needed at the start. */
const BUNDLED = new Map([["yaml", "browser/index.js"]]);

const [modules = "", dist = ""] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(import.meta.url);

const entries = globSync(ENTRIES, { cwd: modules });
const bundle = await rollup({
  input: Object.fromEntries(entries.map((entry) => [entry.replace(/\.js$/, ""), join(modules, entry)])),
  plugins: [
    { name: "packages", resolveId },
    { name: "dense", renderChunk: dense },
  ],
  onLog(_level, { code, message }) {
    // The compiler's helpers look at `this`, should they run in an older kind of module.
    if (code !== "THIS_IS_UNDEFINED") throw new Error(message);
  },
});
await bundle.write({
  dir: dist,
  format: "es",
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js",
  generatedCode: "es2015",
  hoistTransitiveImports: false,
  manualChunks: (id) => chunkOf(relative(modules, id)),
  onlyExplicitManualChunks: true,
  minifyInternalExports: false,
});
writeNotices();

/** @param {string} path */
function chunkOf(path) {
  // An entry in a chunk would take the whole chunk to its own place.
  return entries.includes(path) ? undefined : CHUNKS.find(({ holds }) => holds.test(path))?.name;
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
  return { code, map: null };
}

/** @param {string} id */
function resolveId(id) {
  if (/^[./]/.test(id)) return undefined;
  const file = BUNDLED.get(id);
  return file === undefined ? { id, external: true } : join(packageFolder(id), file);
}

/** @param {string} name */
function packageFolder(name) {
  return dirname(require.resolve(`${name}/package.json`));
}

/** The licences of what became a part of the program ask to go with it. */
function writeNotices() {
  const notices = [...BUNDLED.keys()].map((name) => {
    const folder = packageFolder(name);
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return `${name} ${version}\n\n${readFileSync(join(folder, "LICENSE"), "utf8")}`;
  });
  if (!existsSync(dist)) mkdirSync(dist, { recursive: true });
  writeFileSync(join(dist, "NOTICES"), notices.join("\n\n"));
}
