/** The files of a new plugin: small, complete and tested. @returns text by file name */
export function skeleton(name: string): Readonly<Record<string, string>> {
  return {
    [`${name}.ts`]: `import { parseRecord, RecordType } from "portolan/dns";
import { definePlugin, directive, domainName, integer, required, single } from "portolan/plugin";

export default definePlugin({
  name: "${name}",
  summary: "Answers TXT queries for one name.",
  config: directive({
    args: { name: required(domainName()) },
    options: { ttl: single(integer({ min: 0, max: 3600 }), 60) },
  }),
  create: ({ name, ttl }) => ({
    handle(query, next) {
      if (query.type !== RecordType.TXT || !query.name.equals(name)) return next(query);
      query.trace?.note("answered by ${name}");
      return query.reply({ answer: [parseRecord(\`\${name} \${ttl} IN TXT "hello"\`)] });
    },
  }),
});
`,
    [`${name}.test.ts`]: `import assert from "node:assert/strict";
import { test } from "node:test";
import { createServer } from "portolan";
import { answering, PluginTest } from "portolan/testing";
import plugin from "./${name}.ts";

test("answers for its name", async () => {
  const answer = await PluginTest.of(plugin, "${name} hello.example").ask({ name: "Hello.example.", type: "TXT" });
  assert.deepEqual(answer.answer, ['hello.example. 60 IN TXT "hello"']);
});

test("ttl", async () => {
  const running = PluginTest.of(plugin, "${name} hello.example {\\n ttl 5\\n}");
  const { reply } = await running.ask({ name: "hello.example.", type: "TXT" });
  assert.equal(reply.answer[0]?.ttl, 5);
});

test("leaves other names and types to the next plugin", async () => {
  const running = PluginTest.of(plugin, "${name} hello.example");
  for (const question of [{ name: "example.", type: "TXT" }, { name: "hello.example.", type: "A" }]) {
    const answer = await running.ask({ ...question, next: answering({}) });
    assert.deepEqual(answer.answer, []);
  }
});

test("answers over a socket, in a server of this process", async () => {
  await using server = await createServer({
    corefile: ".:0 {\\n bind 127.0.0.1\\n ${name} hello.example\\n whoami\\n}\\n",
    plugins: [plugin],
  });
  await server.start();
  const { answer } = await server.ask({ name: "hello.example", type: "TXT", over: "udp" });
  assert.deepEqual(answer, ['hello.example. 60 IN TXT "hello"']);
  const other = await server.ask({ name: "example", over: "tcp" });
  assert.equal(other.answer.length, 0);
});
`,
    Corefile: `.:10053 {
    bind 127.0.0.1
    errors
    log
    ${name} hello.example {
        ttl 30
    }
    whoami
}
`,
  };
}

/**
 * The files that make a plugin a package for npm. It has no dependency and needs no other program to be built: Node takes the types away, as
 * Portolan does for a file beside the Corefile.
 * @param version of Portolan
 * @returns text by file name
 */
export function packageFiles(name: string, version: string): Readonly<Record<string, string>> {
  const packageName = `portolan-plugin-${name}`;
  const manifest = {
    name: packageName,
    version: "0.1.0",
    description: `The plugin ${name} for Portolan`,
    keywords: ["portolan-plugin", "dns"],
    license: "UNLICENSED",
    type: "module",
    engines: { node: ">=24.11" },
    exports: `./dist/${name}.js`,
    files: ["dist"],
    scripts: { build: "node build.js", test: "portolan plugin test", prepack: "npm run build" },
    peerDependencies: { portolan: `>=${version}` },
    // The program that runs the plugin brings what it imports; npm need not install a second one.
    peerDependenciesMeta: { portolan: { optional: true } },
  };
  return {
    "package.json": `${JSON.stringify(manifest, null, 2)}\n`,
    "build.js": `// Writes dist/${name}.js: packages must be JavaScript, and Node takes the types away.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";

mkdirSync("dist", { recursive: true });
writeFileSync("dist/${name}.js", stripTypeScriptTypes(readFileSync("${name}.ts", "utf8")));
`,
    "README.md": `# ${packageName}

Answers TXT queries for one name, in Portolan.

Install it next to the Corefile:

    npm install ${packageName}

\`Corefile\`:

    {
        plugin ${name} ${packageName}
    }
    .:10053 {
        ${name} hello.example
        whoami
    }
`,
    ".gitignore": "node_modules/\ndist/\n",
  };
}
