// node build-page.mjs DIST: joins the scripts of the console's page into one file each, with the licences of what is in them.
import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { build } from "esbuild";

const [dist = ""] = process.argv.slice(2).map((path) => resolve(path));
const root = dirname(dirname(import.meta.dirname));

/** Packages that become a part of the page. */
const BUNDLED = ["preact", "@preact/signals", "@preact/signals-core"];

const { metafile } = await build({
  // What runs in the browser, its styles, and what the server draws the first frame with.
  entryPoints: ["app.tsx", "app.css", "first-frame.tsx"].map((name) =>
    join(root, "src", "console", "page", name),
  ),
  outdir: join(dist, "console", "page"),
  allowOverwrite: true,
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
});
for (const input of Object.keys(metafile.inputs)) {
  const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
  if (name !== undefined && !BUNDLED.includes(name))
    throw new Error(`the page has ${name} in it, whose licence is not among the notices: add it to BUNDLED`);
}
// The page's own compiler settings are not part of the package.
rmSync(join(dist, "console", "page", "tsconfig.json"), { force: true });
for (const name of BUNDLED) {
  const folder = join(root, "node_modules", name);
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  appendFileSync(
    join(dist, "NOTICES"),
    `\n\n${name} ${version}\n\n${readFileSync(join(folder, "LICENSE"), "utf8")}`,
  );
}
