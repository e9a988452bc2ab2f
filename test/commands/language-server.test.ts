/** `portolan language-server`, asked by a client of the protocol. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import type { MarkupContent } from "vscode-languageserver-protocol/node";
import { writeTree } from "../../scripts/lib/test-tree.ts";
import { Editor } from "../support/editor.ts";
import { runPortolan } from "../support/portolan.ts";

const CLEAN = ". {\n    forward . 192.0.2.53\n}\n";
const FAULTY =
  ". {\n    forwrad . 192.0.2.53\n    cache zones {\n        prefetch often\n    }\n    hosts\n}\n";

const folder = mkdtempSync(join(tmpdir(), "portolan-editor-"));
writeTree(folder, {
  Corefile: CLEAN,
  Scratch: CLEAN,
  faulty: FAULTY,
  "app/Corefile":
    "import parts/snippets\n. {\n    import parts/*.override\n    import cached\n    forward . 192.0.2.53\n}\n",
  "app/parts/snippets": "(cached) {\n    cache 30\n}\n",
  "app/parts/one.override": "log\n",
  "app/parts/two.override": "errors\n",
  "greet.ts": `import { definePlugin, directive, single, choice } from "portolan/plugin";
export default definePlugin({
  name: "greet",
  summary: "Greets.",
  config: directive({ options: { tone: single(choice(["kind", "gruff"])) } }),
  create: () => ({ handle: (query, next) => next(query) }),
});
`,
});
const editor = await Editor.start(folder);
after(async () => {
  await editor[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});
await editor.open("Scratch");

function textOf(message: string | MarkupContent): string {
  return typeof message === "string" ? message : message.value;
}

function labels(items: readonly { readonly label: string }[]): string[] {
  return items.map(({ label }) => label);
}

describe("diagnostics", () => {
  test("are those of portolan check, with code, severity and range, for the text that is not saved", async () => {
    await editor.open("faulty");
    const found = await editor.findings("faulty");
    const { output } = await runPortolan(["check", "-format", "json", "faulty"], { cwd: folder });
    const report: {
      diagnostics: {
        code: string;
        severity: string;
        line: number;
        column: number;
        length: number;
        message: string;
      }[];
    } = JSON.parse(output);
    assert.ok(report.diagnostics.length >= 2, output);
    assert.deepEqual(
      found.map(({ code, severity, range, message }) => [
        code,
        severity,
        range.start,
        range.end,
        textOf(message).split("\n")[0],
      ]),
      report.diagnostics.map(({ code, severity, line, column, length, message }) => [
        code,
        severity === "error" ? 1 : 2,
        { line: line - 1, character: column - 1 },
        { line: line - 1, character: column - 1 + length },
        message,
      ]),
    );
    assert.match(textOf(found[0]?.message ?? ""), /\ndid you mean 'forward'\?/);
    await editor.type("faulty", "forwrad", "forward");
    await editor.type("faulty", "prefetch often", "prefetch 10");
    const mended = await editor.findings("faulty");
    assert.deepEqual(
      mended.filter(({ severity }) => severity === 1),
      [],
    );
  });

  test("of an imported part are those of the Corefile that imports it, and follow what is typed there", async () => {
    await editor.open("app/Corefile");
    assert.deepEqual(await editor.findings("app/Corefile"), []);
    await editor.open("app/parts/one.override");
    assert.deepEqual(await editor.findings("app/parts/one.override"), []);
    await editor.type("app/parts/one.override", "log", "logg");
    const [found] = await editor.findings("app/parts/one.override");
    assert.equal(found?.code, "COREFILE_UNKNOWN_DIRECTIVE");
    assert.deepEqual(found?.range, { start: { line: 0, character: 0 }, end: { line: 0, character: 4 } });
    const [outside] = await editor.findings("app/Corefile", (all) => all.length > 0);
    assert.equal(outside?.range.start.line, 2, "at the import");
    assert.equal(outside?.relatedInformation?.[0]?.location.uri, editor.uri("app/parts/one.override"));
    await editor.close("app/parts/one.override");
    assert.deepEqual(await editor.findings("app/Corefile", (all) => all.length === 0), []);
  });

  test("of a ConfigMap are at their places in the YAML", async () => {
    const yaml = `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: coredns }\ndata:\n  Corefile: |\n    . {\n        forwrad . 192.0.2.53\n    }\n`;
    await editor.open("map.yaml", yaml);
    const [found] = await editor.findings("map.yaml");
    assert.deepEqual(found?.range.start, { line: 6, character: 8 });
    assert.deepEqual(await editor.format("map.yaml"), []);
    await editor.close("map.yaml");
  });
});

describe("completion", () => {
  const complete = (text: string) => editor.complete("Scratch", text);

  test("offers directives in a server block, and their pages", async () => {
    const items = await complete(". {\n    for|\n}\n");
    assert.ok(items.length > 50);
    const forward = items.find(({ label }) => label === "forward");
    assert.deepEqual(forward?.textEdit, {
      newText: "forward",
      range: { start: { line: 1, character: 4 }, end: { line: 1, character: 7 } },
    });
    assert.ok(forward);
    const { documentation } = await editor.resolve(forward);
    assert.match(JSON.stringify(documentation), /^\{"kind":"markdown","value":"\*\*forward\*\*: /);
  });

  for (const [what, text, offered, not] of [
    [
      "options in a block",
      ". {\n    cache 30 {\n        |\n    }\n}\n",
      ["success", "prefetch", "keepttl"],
      ["forward"],
    ],
    [
      "options while the block is open",
      ". {\n    forward . 192.0.2.53 {\n        po|",
      ["policy", "max_fails"],
      [],
    ],
    [
      "values of an option",
      ". {\n    forward . 192.0.2.53 {\n        policy |\n    }\n}\n",
      ["random", "round_robin", "sequential"],
      ["policy"],
    ],
    ["values that repeat", ". {\n    ready\n    log {\n        class denial |\n    }\n}\n", ["error"], []],
    ["values of a directive", ". {\n    loadbalance |\n}\n", ["round_robin", "weighted"], []],
    [
      "snippets and files",
      "(common) {\n    errors\n}\n. {\n    import |\n}\n",
      ["common", "faulty", "app"],
      ["Scratch", "forward"],
    ],
    ["files in folders", ". {\n    import app/parts/|\n}\n", ["app/parts/one.override"], ["faulty"]],
    ["blocks at the top", "|", ["server block", "snippet", "import"], []],
    [
      "plugins that the Corefile adds",
      "{\n    plugin greet ./greet.ts\n}\n. {\n    gre|\n}\n",
      ["greet"],
      [],
    ],
    [
      "values of plugins that the Corefile adds",
      "{\n    plugin greet ./greet.ts\n}\n. {\n    greet {\n        tone |\n    }\n}\n",
      ["kind", "gruff"],
      [],
    ],
    ["the global option", "{\n    |\n}\n", ["plugin"], ["forward"]],
    ["nothing in a comment", ". {\n    # for|\n}\n", [], ["forward"]],
    ["nothing in quotes", '. {\n    log "for|"\n}\n', [], ["forward"]],
    ["nothing for words that cannot be listed", ". {\n    forward |\n}\n", [], ["forward", "cache"]],
  ] as const) {
    test(`offers ${what}`, async () => {
      const found = labels(await complete(text));
      for (const word of offered) assert.ok(found.includes(word), `${word} is not in ${found.join(" ")}`);
      for (const word of not) assert.ok(!found.includes(word), `${word} is offered`);
      if (offered.length === 0) assert.deepEqual(found, []);
    });
  }
});

describe("hover", () => {
  for (const [what, text, shown] of [
    [
      "the page of a directive",
      ". {\n    for|ward . 192.0.2.53\n}\n",
      /^\*\*forward\*\*: [\s\S]*```txt\nforward FROM TO/,
    ],
    ["the page over a value", ". {\n    forward . 192.|0.2.53\n}\n", /^\*\*forward\*\*/],
    [
      "an option",
      ". {\n    cache {\n        |prefetch 10\n    }\n}\n",
      /^```corefile\nprefetch AMOUNT.*\n```\n\n`prefetch`/,
    ],
    [
      "a snippet",
      "(common) {\n    errors\n}\n. {\n    import com|mon\n}\n",
      /^```corefile\n\(common\) \{\n {4}errors\n\}\n```$/,
    ],
    ["import", ". {\n    imp|ort x\n}\n", /^`import`/],
    [
      "a plugin that the Corefile adds",
      "{\n    plugin greet ./greet.ts\n}\n. {\n    gr|eet\n}\n",
      /^\*\*greet\*\*: Greets\./,
    ],
    ["nothing over a key", "exam|ple.org {\n}\n", undefined],
    ["nothing over a comment", ". {\n    # for|ward\n}\n", undefined],
  ] as const) {
    test(`shows ${what}`, async () => {
      const found = await editor.hover("Scratch", text);
      if (shown === undefined) assert.equal(found, undefined);
      else assert.match(found ?? "", shown);
    });
  }
});

describe("definition", () => {
  test("of a snippet is its heading", async () => {
    const text = "(common) {\n    errors\n}\n. {\n    import com|mon\n}\n";
    assert.deepEqual(await editor.definitions("Scratch", text), [
      {
        uri: editor.uri("Scratch"),
        range: { start: { line: 0, character: 0 }, end: { line: 0, character: 8 } },
      },
    ]);
  });

  test("of a snippet in an imported file is in that file", async () => {
    const text = "import app/parts/snippets\n. {\n    import cach|ed\n}\n";
    const [found] = await editor.definitions("Scratch", text);
    assert.equal(found?.uri, editor.uri("app/parts/snippets"));
    assert.equal(found?.range.start.line, 0);
  });

  test("of an import is each file that it reads", async () => {
    const found = await editor.definitions("Scratch", ". {\n    import app/parts/*.over|ride\n}\n");
    assert.deepEqual(
      found.map(({ uri }) => uri),
      ["app/parts/one.override", "app/parts/two.override"].map((name) => editor.uri(name)),
    );
    assert.deepEqual(await editor.definitions("Scratch", ". {\n    import no|where\n}\n"), []);
  });
});

describe("formatting", () => {
  test("replaces the text by what portolan fmt prints", async () => {
    await editor.open("new", ". {\nerrors\n}");
    const [edit, ...others] = await editor.format("new");
    assert.deepEqual(others, []);
    assert.deepEqual(edit, {
      range: { start: { line: 0, character: 0 }, end: { line: 2, character: 1 } },
      newText: ". {\n    errors\n}\n",
    });
    await editor.type("new", "}", "");
    assert.deepEqual(await editor.format("new"), [], "a text with errors stays as it is");
    await editor.close("new");
  });
});

describe("the session", () => {
  test("ends with 0 when the editor says so, and with 1 when it goes away", async () => {
    await using polite = await Editor.start(folder, []);
    assert.equal(polite.greeting?.serverInfo?.name, "portolan");
    await polite.open("Corefile");
    assert.equal(await polite.end(), 0);
    await using rude = await Editor.start(folder);
    assert.equal(await rude.vanish(), 1);
  });

  test("does not begin with a wrong command line", async () => {
    const wrong = await runPortolan(["language-server", "-bogus"]);
    assert.equal(wrong.code, 2);
    assert.match(wrong.errors, /^flag provided but not defined: -bogus\n/);
    const words = await runPortolan(["language-server", "Corefile"]);
    assert.deepEqual([words.code, words.output], [2, ""]);
  });
});
