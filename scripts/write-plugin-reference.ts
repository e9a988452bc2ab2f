// Brings the tables of docs/plugins.md up to the declarations of the contract.
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { currentPluginPage, PLUGIN_PAGE } from "./lib/plugin-reference.ts";

const root = dirname(dirname(fileURLToPath(import.meta.url)));

writeFileSync(join(root, PLUGIN_PAGE), currentPluginPage(root));
