import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { substituteEnvironment } from "./environment.ts";

const variables: Readonly<Record<string, string>> = {
  A: "alpha",
  EMPTY: "",
  NESTED: "<{$A}>",
  PERCENT: "{%A%}",
  SPACED: "one two",
  "A:b": "odd",
  SELF: "{$SELF}",
  PING: "{$PONG}",
  PONG: "{$PING}",
  GROWING: "{$GROWING}{$GROWING}",
};

function substitute(text: string) {
  return substituteEnvironment(text, (name) => variables[name]);
}

describe("substituteEnvironment", () => {
  const cases: [text: string, result: string, unset?: string[]][] = [
    ["{$A}", "alpha"],
    ["{%A%}", "alpha"],
    ["x{$A}y{$A}z", "xalphayalphaz"],
    ["{%A%}:{$A}", "alpha:alpha"],
    ["{$A}:{%A%}", "alpha:alpha"],
    ["{$EMPTY}", ""],
    ["{$SPACED}", "one two"],
    ["{$NESTED}", "<alpha>"],
    ["{%NESTED%}", "<alpha>"],
    ["{$A:b}", "odd"],
    ["{{ .Name }} {$A}", "{{ .Name }} alpha"],
    // Percent signs are replaced first, before the dollars.
    ["{$PERCENT}", "{%A%}"],
    ["{$NONE}", "", ["NONE"]],
    ["a{$NONE}b{%NONE%}c{$OTHER}", "abc", ["NONE", "OTHER"]],
    ["{$NONE:default}", "", ["NONE:default"]],
    [":{$PORT$}", ":", ["PORT$"]],
    ["{$$}", "", ["$"]],
    ["{$}{$A}", "{$}alpha"],
  ];
  for (const [text, result, unset = []] of cases) {
    it(`makes ${JSON.stringify(result)} of ${text}`, () => {
      assert.deepEqual(substitute(text), { text: result, unset, endless: false });
    });
  }

  for (const text of ["", "A", "$A", "{A}", "{$}", "{%}", "{%%}", "{$A", "{%A}", "{%A%", "{ $A }"]) {
    it(`leaves ${JSON.stringify(text)} alone`, () => assert.equal(substitute(text), undefined));
  }

  for (const text of ["{$SELF}", "{$PING}", "x{$GROWING}"]) {
    it(`stops at ${text}`, () => assert.equal(substitute(text)?.endless, true));
  }

  it("stops at values that grow without limit", () => {
    const value = `${"x".repeat(70_000)}{$A}`;
    assert.equal(substituteEnvironment("{$A}", () => value)?.endless, true);
  });

  it("ends on any text and any values", () => {
    const text = fc
      .array(fc.constantFrom("{$", "}", "{%", "%}", "A", "B", "$", "%"))
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(text, text, text, (word, a, b) => {
        substituteEnvironment(word, (name) => (name === "A" ? a : name === "B" ? b : undefined));
      }),
    );
  });
});
