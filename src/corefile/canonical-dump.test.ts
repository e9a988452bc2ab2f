import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { canonicalDump } from "./canonical-dump.ts";
import { memoryHost } from "./host.ts";
import { parseCorefile } from "./parser.ts";

const host = memoryHost({ files: { f: "log" }, environment: { PORT: "53" } });

function dump(text: string): string {
  return canonicalDump(parseCorefile(text, { file: "Corefile", host }).corefile);
}

const reference = dump(".:53 {\n    log\n    forward . 1.1.1.1 {\n        policy random\n    }\n}\n");

describe("canonicalDump", () => {
  it("is plain JSON", () => {
    assert.equal(
      reference,
      '[{"keys":[".:53"],"directives":[["log"],["forward",".","1.1.1.1",[["policy","random"]]]]}]',
    );
  });

  const same: [what: string, text: string][] = [
    ["spacing and comments", "# x\n.:53 {\n\n log # y\n\tforward   . 1.1.1.1 {\n policy random\n }\n }\n"],
    ["quotes", '".:53" {\n "log"\n forward "." 1.1.1.1 {\n policy "random"\n }\n}'],
    ["imports", "(s) {\n policy random\n}\n.:53 {\n import f\n forward . 1.1.1.1 {\n import s\n }\n}"],
    ["the environment", ".:{$PORT} {\n log\n forward . 1.1.1.1 {\n policy random\n }\n}"],
    ["missing braces", ".:53\nlog\nforward . 1.1.1.1 {\n policy random\n}"],
  ];
  for (const [what, text] of same) {
    it(`does not depend on ${what}`, () => assert.equal(dump(text), reference));
  }

  const different: [what: string, text: string][] = [
    ["a key", ".:54 {\n log\n forward . 1.1.1.1 {\n policy random\n }\n}"],
    ["an argument", ".:53 {\n log\n forward . 1.1.1.2 {\n policy random\n }\n}"],
    ["the order of directives", ".:53 {\n forward . 1.1.1.1 {\n policy random\n }\n log\n}"],
    ["where a line ends", ".:53 {\n log\n forward . 1.1.1.1 {\n policy\n random\n }\n}"],
    ["whether there is a block", ".:53 {\n log {\n }\n forward . 1.1.1.1 {\n policy random\n }\n}"],
    ["the case of letters", ".:53 {\n log\n forward . 1.1.1.1 {\n policy Random\n }\n}"],
  ];
  for (const [what, text] of different) {
    it(`depends on ${what}`, () => assert.notEqual(dump(text), reference));
  }
});
