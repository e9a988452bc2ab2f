import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { toLatin1 } from "./octets.ts";
import {
  escapeText,
  opaqueText,
  PresentationError,
  quoteText,
  RdataScanner,
  tokenizeRecord,
  unescapeText,
} from "./rdata-scanner.ts";

const words = (text: string) => tokenizeRecord(text).map((token) => token.text);

describe("tokenizeRecord", () => {
  const cases: [text: string, tokens: string[]][] = [
    ["", []],
    [" \t\r\n", []],
    ["a b\tc\r\nd", ["a", "b", "c", "d"]],
    ["( a\n b ) c(d)e", ["a", "b", "c", "d", "e"]],
    ["a ; b c\nd ;", ["a", "d"]],
    ['a"b c"d', ["a", "b c", "d"]],
    ['"" "a;(b)\\"c"', ["", 'a;(b)\\"c']],
    ["a\\ b \\; \\( \\\\", ["a\\ b", "\\;", "\\(", "\\\\"]],
    ["a\\", ["a\\"]],
    ['key="a b" x', ["key=", "a b", "x"]],
    // Only ASCII blanks separate words: others belong to a text.
    ["a\u00a0b\u2028c", ["a\xc2\xa0b\xe2\x80\xa8c"]],
  ];
  for (const [text, tokens] of cases)
    it(`splits ${JSON.stringify(text)}`, () => assert.deepEqual(words(text), tokens));

  it("returns column, quotes and adjacency to the previous token", () => {
    assert.deepEqual(tokenizeRecord('ab="c" "d"e'), [
      { text: "ab=", quoted: false, adjacent: false, column: 1 },
      { text: "c", quoted: true, adjacent: true, column: 4 },
      { text: "d", quoted: true, adjacent: false, column: 8 },
      { text: "e", quoted: false, adjacent: true, column: 11 },
    ]);
  });

  it("refuses an unclosed quote", () => {
    for (const text of ['a "b', '"', '"a\\"', '"\\'])
      assert.throws(
        () => tokenizeRecord(text),
        (error: unknown) => error instanceof PresentationError && error.column === text.indexOf('"') + 1,
      );
  });
});

describe("RdataScanner", () => {
  it("reads text as its octets in UTF-8", () => {
    assert.deepEqual(words("ü\u{1f600} \\ü"), ["\xc3\xbc\xf0\x9f\x98\x80", "\\\xc3\xbc"]);
  });

  it("reports where the text ends too early", () => {
    const scanner = RdataScanner.of("10");
    assert.equal(scanner.integer("a preference", 65535), 10);
    assert.throws(() => scanner.domainName("a mail server"), {
      name: "PresentationError",
      column: 3,
      message: "column 3: text ends where a mail server is expected",
    });
  });

  it("reads integers only in decimal digits", () => {
    const read = (text: string) => RdataScanner.of(text).integer("a number", 255);
    assert.equal(read("255"), 255);
    assert.equal(read("007"), 7);
    for (const text of ["256", "-1", "+1", "1.0", "1e2", "0x10", "٣", '""', "9".repeat(400)])
      assert.throws(() => read(text), PresentationError, text);
  });

  it("turns errors of names into its own", () => {
    assert.throws(() => RdataScanner.of("  a..b").domainName("a name"), {
      name: "PresentationError",
      column: 3,
      message: /a name: not a domain name: "a\.\.b": empty label/,
    });
  });
});

describe("character strings", () => {
  const cases: [text: string, octets: string][] = [
    ["", ""],
    ["abc", "abc"],
    ["\\097\\098c", "abc"],
    ['\\a\\\\\\"', 'a\\"'],
    ["\\000\\255", "\0\xff"],
    ["\\12", "12"],
    ["\x80\xff", "\x80\xff"],
    ["\\\xc3\xbc", "\xc3\xbc"],
    ["\\\xb2\xb2\xb2", "\xb2\xb2\xb2"],
  ];
  for (const [text, octets] of cases) {
    it(`${JSON.stringify(text)} is ${JSON.stringify(octets)}`, () => {
      const read = unescapeText(text);
      assert.ok(read);
      assert.equal(toLatin1(read), octets);
    });
  }

  it("have no escape above 255 and none at their end", () => {
    for (const text of ["\\256", "a\\", "\\999"]) assert.equal(unescapeText(text), undefined);
  });

  it("can be read back from their printed text, which is ASCII", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (octets) => {
        assert.match(escapeText(octets), /^[ -~]*$/);
        assert.deepEqual(unescapeText(escapeText(octets)), octets);
        const [token, ...more] = tokenizeRecord(quoteText(octets));
        assert.deepEqual(unescapeText(token?.text ?? "?"), octets);
        assert.deepEqual(more, []);
      }),
    );
  });
});

describe("opaqueText", () => {
  it("has the form of RFC 3597 section 5", () => {
    assert.equal(opaqueText(Uint8Array.of(0x0a, 0, 0xff)), "\\# 3 0A00FF");
    assert.equal(opaqueText(new Uint8Array(0)), "\\# 0");
  });
});
