// Makes the packages of back ends dependencies of the program, in the versions that the tests run with:
// node scripts/add-back-ends.mjs route53 azure. Then `npm install --omit=dev` installs them as the lock file has them.
import { readFileSync, writeFileSync } from "node:fs";

/** By directive; all others need no package that is not there. */
const PACKAGES = new Map([
  ["route53", "@aws-sdk/client-route-53"],
  ["azure", "@azure/identity"],
  ["clouddns", "google-auth-library"],
]);

const names = process.argv.slice(2);
const unknown = names.filter((name) => !PACKAGES.has(name));
if (unknown.length > 0) {
  console.error(
    `No back end with a package: ${unknown.join(", ")}. There are ${[...PACKAGES.keys()].join(", ")}.`,
  );
  process.exit(2);
}
const manifest = JSON.parse(readFileSync("package.json", "utf8"));
for (const name of names) {
  const module = PACKAGES.get(name) ?? "";
  manifest.dependencies[module] ??= manifest.devDependencies[module];
  delete manifest.devDependencies[module];
}
if (names.length > 0) writeFileSync("package.json", `${JSON.stringify(manifest, undefined, 2)}\n`);
