// Brings docs/compatibility.md up to what the READMEs say under "Differences from CoreDNS".
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { currentPage, PAGE } from "./lib/differences.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

writeFileSync(join(root, PAGE), currentPage(root));
