/** `portolan plugin`: creates a plugin, and runs plugin tests. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeNoText } from "../../corefile/host.ts";
import { nodeHost } from "../../corefile/node-host.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { programModule } from "../../lib/files/program-files.ts";
import { version } from "../../lib/text/version.ts";
import { builtInPlugins } from "../../server/configuration/plugin-registry.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { fitted } from "../terminal.ts";
import { packageFiles, skeleton } from "./skeleton.ts";

const CANNOT = 2;

/** @returns the exit code */
export async function plugin(argv: readonly string[]): Promise<number> {
  const [action, ...words] = argv;
  if (action === "new") {
    const names = words.filter((word) => !/^--?package$/.test(word));
    const [name, ...more] = names;
    if (name !== undefined && more.length === 0 && words.length <= 2)
      return begin(name, words.length > names.length);
  }
  if (action === "test") return runTests(words);
  const isAsked = action !== undefined && /^--?h(elp)?$/.test(action);
  (isAsked ? process.stdout : process.stderr).write(fitted(USAGE));
  return isAsked ? 0 : CANNOT;
}

const USAGE = `Usage: portolan plugin new [-package] NAME  writes a plugin that works, its test and a Corefile into the folder NAME;
                                         with -package also what npm needs to publish it
       portolan plugin test [FILE...]        runs tests of plugins (default: all *.test.ts and *.test.js here and below)

${exitCodesLine("plugin")}
`;

async function begin(name: string, asPackage: boolean): Promise<number> {
  if (!/^[a-z][a-z0-9_-]{0,62}$/.test(name))
    return fail(
      `"${name}" cannot be the name of a plugin: lower-case letters, digits, - and _, a letter first`,
    );
  const taken = await builtInPlugins();
  if (taken.some((entry) => entry.name === name)) return fail(`there is a plugin "${name}" already`);
  try {
    mkdirSync(name);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST")
      return fail(`there is a file or folder ${name} here already: take another name, or another folder`);
    return fail(`cannot create the directory ${name}: ${fileFault(error)}`);
  }
  const files = { ...skeleton(name), ...(asPackage && packageFiles(name, version)) };
  for (const [file, text] of Object.entries(files)) {
    writeFileSync(join(name, file), text, { flag: "wx" });
    process.stdout.write(`${join(name, file)}\n`);
  }
  process.stdout.write(
    `
Run its test:  portolan plugin test ${name}/${name}.test.ts
Run it:        portolan -conf ${name}/Corefile -plugin ${name}:${name}/${name}.ts
Ask it:        dig @127.0.0.1 -p 10053 hello.example TXT
${asPackage ? `Pack it:       cd ${name} && npm pack\n` : ""}`,
  );
  return 0;
}

/** Runs the files under Node's test runner. There, "portolan/plugin" resolves to this program. */
async function runTests(words: readonly string[]): Promise<number> {
  const files =
    words.length > 0 ? words : globSync("**/*.test.{ts,js,mjs}", { exclude: ["**/node_modules/**"] });
  if (files.length === 0) return fail("no tests found: tests are files such as greet.test.ts");
  for (const file of files) {
    const content = nodeHost.readFile(file);
    if (content.kind !== "text") return fail(`cannot test ${file}: ${describeNoText(content)}`);
  }
  const imports = programModule("cli/plugin-command/test-imports").href;
  // A nested test runner prints nothing for people.
  const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
  const child = spawn(process.execPath, ["--import", imports, "--test", ...files], { stdio: "inherit", env });
  const [code]: unknown[] = await once(child, "close");
  return typeof code === "number" ? code : 1;
}

function fail(message: string): number {
  process.stderr.write(`${message}\n`);
  return CANNOT;
}
