// Makes what people can take away: one command each, as `npm run` calls them.
import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runScript } from "../lib/step.mjs";
import { COMMANDS } from "./commands.ts";
import { readEdition } from "./edition.ts";
import { platformsOf } from "./platforms.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

const HELP = `npm run COMMAND -- [--out DIR] [--platform linux/amd64] [--platform linux/arm64]

${COMMANDS.map(({ name, about }) => `  ${name.padEnd(12)}${about}`).join("\n")}

  --out DIR    where to put it; release/ unless given
  --platform   only for this platform; for all unless given
`;

await runScript(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      out: { type: "string", default: "release" },
      platform: { type: "string", multiple: true, default: [] },
      help: { type: "boolean" },
    },
  });
  const command = COMMANDS.find(({ name }) => name === positionals[0]);
  if (values.help || command === undefined) {
    console.log(HELP);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  const platforms = platformsOf(values.platform);
  const out = resolve(root, values.out);
  mkdirSync(out, { recursive: true });
  for (const line of await command.make({ edition: readEdition(root, process.env), platforms, out }))
    console.log(line);
});
