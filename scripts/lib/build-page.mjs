// node build-page.mjs DIST: joins the script of the console's page into one file, with the licences of what is in it.
import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { build } from "esbuild";

const [dist = ""] = process.argv.slice(2).map((path) => resolve(path));
const root = dirname(dirname(import.meta.dirname));

/** Packages that become a part of the page. */
const BUNDLED = ["preact", "@preact/signals", "@preact/signals-core"];

const { metafile } = await build({
  entryPoints: [join(root, "src", "console", "page", "app.tsx")],
  outfile: join(dist, "console", "page", "app.js"),
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".css": "text" },
  legalComments: "none",
  logLevel: "warning",
});
for (const input of Object.keys(metafile.inputs)) {
  const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
  if (name !== undefined && !BUNDLED.includes(name))
    throw new Error(`the page has ${name} in it, whose licence is not among the notices: add it to BUNDLED`);
}
// The style sheet is in the script, and the page's own settings for the compiler are of no use to anybody.
for (const file of ["app.css", "tsconfig.json"]) rmSync(join(dist, "console", "page", file), { force: true });
for (const name of BUNDLED) {
  const folder = join(root, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  appendFileSync(
    join(dist, "NOTICES"),
    `\n\n${name} ${version}\n\n${readFileSync(join(folder, "LICENSE"), "utf8")}`,
  );
}
