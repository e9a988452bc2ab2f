import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { anyName } from "./fixtures/arbitraries.ts";
import { hashName, Name, NameError } from "./name.ts";
import { toHex, toLatin1 } from "./octets.ts";

const parse = (text: string) => Name.parse(text);

/** Four labels that fill 255 octets, the root included. */
const LONGEST = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join(".");

describe("Name.parse", () => {
  const good: [text: string, wire: string, printed: string][] = [
    [".", "00", "."],
    ["org", "036f726700", "org."],
    ["Example.ORG.", "074578616d706c65034f524700", "Example.ORG."],
    ["_53._udp.example.", "035f3533045f756470076578616d706c6500", "_53._udp.example."],
    ["*.example.", "012a076578616d706c6500", "*.example."],
    ["a\\.b.c.", "03612e62016300", "a\\.b.c."],
    ["\\097\\098.c.", "026162016300", "ab.c."],
    ["\\000\\255\\127.", "0300ff7f00", "\\000\\255\\127."],
    ["a b.c.", "03612062016300", "a\\032b.c."],
    ["a\\ b\\009.", "0461206209" + "00", "a\\032b\\009."],
    ['\\"\\(\\)\\;\\@\\$\\\\.', "0722" + "28293b40245c00", '\\"\\(\\)\\;\\@\\$\\\\.'],
    ['"();@$.', "06222" + "8293b402400", '\\"\\(\\)\\;\\@\\$.'],
    ["@", "014000", "\\@."],
    ["\\1a\\12.", "0431613132" + "00", "1a12."],
    ["\\0610.", "023d3000", "=0."],
  ];
  for (const [text, wire, printed] of good) {
    it(`reads ${text}`, () => {
      const name = parse(text);
      assert.equal(toHex(name.wire), wire);
      assert.equal(name.toString(), printed);
      assert.equal(JSON.stringify({ name }), JSON.stringify({ name: printed }));
      assert.deepEqual(parse(printed).wire, name.wire);
    });
  }

  const bad: [text: string, reason: RegExp][] = [
    ["", /empty text/],
    ["..", /empty label/],
    [".a", /empty label/],
    ["a..b", /empty label/],
    ["a.b..", /empty label/],
    ["a\\", /backslash/],
    ["a\\256b", /above 255/],
    ["bücher.example", /not ASCII.*punycode/],
    ["\\ü", /not ASCII/],
    ["a\u{1f600}", /not ASCII/],
    [`${"a".repeat(64)}.`, /63 octets/],
    [`${"\\097".repeat(64)}.`, /63 octets/],
    [`${LONGEST}e`, /255 octets/],
    [`${LONGEST}.e`, /255 octets/],
    ["a.".repeat(128), /255 octets/],
    ["a.".repeat(100_000), /255 octets/],
  ];
  for (const [text, reason] of bad) {
    it(`refuses ${text.length > 40 ? `${text.slice(0, 40)}… of ${text.length}` : `"${text}"`}`, () => {
      assert.throws(
        () => parse(text),
        (error: unknown) => {
          assert.ok(error instanceof NameError);
          assert.match(error.reason, reason);
          assert.equal(error.text, text);
          assert.ok(error.message.length < 1200);
          return true;
        },
      );
      assert.equal(Name.tryParse(text), undefined);
    });
  }

  it("takes 63 octets in a label and 255 in a name, escapes counted as one", () => {
    assert.equal(parse(LONGEST).wire.length, 255);
    assert.equal(parse(`${LONGEST}.`).wire.length, 255);
    assert.equal(parse("a.".repeat(127)).labelCount, 127);
    const escaped = LONGEST.replace(
      /[a-d]/g,
      (letter) => `\\${letter.charCodeAt(0).toString().padStart(3, "0")}`,
    );
    assert.deepEqual(parse(escaped).wire, parse(LONGEST).wire);
  });

  it("completes relative names with the origin", () => {
    const origin = parse("Example.org.");
    assert.equal(Name.parse("www", origin).toString(), "www.Example.org.");
    assert.equal(Name.parse("a.b", origin).toString(), "a.b.Example.org.");
    assert.equal(Name.parse("www.", origin).toString(), "www.");
    assert.equal(Name.parse("a\\.", origin).toString(), "a\\..Example.org.");
    assert.equal(Name.parse("@", origin), origin);
    assert.equal(Name.parse("\\@", origin).toString(), "\\@.Example.org.");
    assert.equal(Name.parse(".", origin), Name.root);
    assert.equal(Name.parse("@", Name.root), Name.root);
    assert.throws(() => Name.parse("e", parse(LONGEST)), NameError);
  });

  it("throws only NameError, and prints names in a form that it can read back", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.string({ unit: fc.constantFrom(".", "\\", "0", "2", "9", "a", "B", "@", '"', " "), maxLength: 40 }),
      fc.string({ unit: fc.constantFrom(".", "x".repeat(31), "\\100"), maxLength: 40 }),
    );
    fc.assert(
      fc.property(text, fc.option(anyName, { nil: undefined }), (text, origin) => {
        let name: Name;
        try {
          name = Name.parse(text, origin);
        } catch (error) {
          assert.ok(error instanceof NameError, `${error}`);
          return;
        }
        assert.ok(name.wire.length <= 255);
        assert.deepEqual(parse(name.toString()).wire, name.wire);
      }),
      { numRuns: 500 },
    );
  });
});

describe("Name.fromLabels", () => {
  it("takes each character as an octet, dots and NUL included", () => {
    const name = Name.fromLabels(["a.b", "\0\xff", "C"], parse("org"));
    assert.equal(toHex(name.wire), "03612e62" + "0200ff" + "0143" + "036f726700");
    assert.equal(name.toString(), "a\\.b.\\000\\255.C.org.");
    assert.equal(Name.fromLabels([]), Name.root);
  });

  it("refuses invalid labels, and too many of them", () => {
    for (const labels of [
      [""],
      ["a", "", "b"],
      ["x".repeat(64)],
      ["Ā"],
      ["\u{1f600}"],
      ["a".repeat(1_000_000)],
    ])
      assert.throws(() => Name.fromLabels(labels), NameError);
    assert.throws(() => Name.fromLabels(new Array<string>(128).fill("a")), NameError);
    assert.throws(() => parse(LONGEST).prepend("e"), NameError);
    assert.equal(Name.fromLabels(new Array<string>(127).fill("a")).labelCount, 127);
  });

  it("joins the labels of any name back to that name", () => {
    fc.assert(
      fc.property(anyName, (name) => {
        const labels = Array.from({ length: name.labelCount }, (_, index) => toLatin1(name.label(index)));
        assert.deepEqual(Name.fromLabels(labels), name);
      }),
    );
  });
});

describe("a name's case", () => {
  it("is kept and ignored", () => {
    const spelled = parse("WWW.Example.org");
    const lower = parse("www.example.org");
    assert.equal(spelled.toString(), "WWW.Example.org.");
    assert.equal(spelled.toLowerCase().toString(), "www.example.org.");
    assert.equal(lower.toLowerCase(), lower);
    assert.equal(lower.folded, lower.wire);
    assert.equal(spelled.hash, lower.hash);
    assert.equal(spelled.equals(lower), true);
    assert.equal(spelled.compare(lower), 0);
    assert.equal(spelled.labelText(0), "www");
    assert.equal(toLatin1(spelled.label(0)), "WWW");
  });

  it("only concerns ASCII letters", () => {
    const pairs = [
      ["\\192", "\\224"],
      ["\\064", "\\096"],
      ["[", "{"],
      ["\\000", "\\032"],
    ] as const;
    for (const [one, other] of pairs) assert.equal(parse(one).equals(parse(other)), false, one);
    // Length octets 65 to 90 do not exist, but a long label in an ordinary encoding could look like them.
    const long = parse(`${"A".repeat(63)}.b`);
    assert.equal(long.folded[0], 63);
  });
});

describe("hashName", () => {
  it("gives every suffix the hash that it has as a name", () => {
    fc.assert(
      fc.property(anyName, (name) => {
        let start = 0;
        for (let skip = 0; skip <= name.labelCount; skip++) {
          assert.equal(hashName(name.wire, start, name.wire.length), name.suffix(skip).hash);
          start += 1 + (name.wire[start] ?? 0);
        }
      }),
    );
  });

  it("may collide, and comparisons are still right", () => {
    const one = parse("7vw");
    const other = parse("65ak");
    assert.equal(one.hash, other.hash);
    assert.equal(one.equals(other), false);
    assert.notEqual(one.compare(other), 0);
    assert.equal(one.isAtOrBelow(other), false);
  });
});

describe("relations of names", () => {
  it("isAtOrBelow and isBelow compare whole labels", () => {
    const zone = parse("example.org");
    const cases: [name: string, atOrBelow: boolean, below: boolean][] = [
      ["example.org.", true, false],
      ["EXAMPLE.ORG.", true, false],
      ["www.example.org.", true, true],
      ["a.b.Example.org.", true, true],
      ["badexample.org.", false, false],
      ["org.", false, false],
      ["example.com.", false, false],
      [".", false, false],
    ];
    for (const [text, atOrBelow, below] of cases) {
      assert.equal(parse(text).isAtOrBelow(zone), atOrBelow, text);
      assert.equal(parse(text).isBelow(zone), below, text);
    }
    assert.equal(zone.isBelow(Name.root), true);
    assert.equal(Name.root.isAtOrBelow(Name.root), true);
    assert.equal(Name.root.isBelow(Name.root), false);
  });

  it("do not mistake octets of a label for labels", () => {
    // The label ends in octets that look like the wire form of "a.b.".
    const disguised = Name.fromLabels(["x\x01a\x01b"]);
    assert.equal(disguised.isAtOrBelow(parse("a.b")), false);
    assert.equal(disguised.isAtOrBelow(parse("b")), false);
  });

  it("suffix, parent and labels walk towards the root", () => {
    const name = parse("a.B.c");
    assert.deepEqual(
      [0, 1, 2, 3, 4, -1].map((skip) => name.suffix(skip).toString()),
      ["a.B.c.", "B.c.", "c.", ".", ".", "a.B.c."],
    );
    assert.equal(name.suffix(0), name);
    assert.equal(name.suffix(3), Name.root);
    assert.equal(name.parent?.toString(), "B.c.");
    assert.equal(parse("c").parent, Name.root);
    assert.equal(Name.root.parent, undefined);
    assert.equal(name.labelCount, 3);
    assert.equal(Name.root.labelCount, 0);
    assert.deepEqual(name.labelsAbove(parse("c")), ["a", "b"]);
    assert.deepEqual(name.labelsAbove(name), []);
    for (const index of [-1, 3, 0.5, Number.NaN]) {
      assert.throws(() => name.label(index), RangeError);
      assert.throws(() => name.labelText(index), RangeError);
    }
  });

  it("isWildcard checks for a leftmost label of one asterisk", () => {
    assert.equal(parse("*.example").isWildcard, true);
    assert.equal(parse("*").isWildcard, true);
    for (const text of ["a.*.example", "**.example", "*a.example", "."])
      assert.equal(parse(text).isWildcard, false, text);
    assert.equal(Name.fromLabels(["*."]).isWildcard, false);
  });

  it("replaceSuffix keeps the labels before the ancestor", () => {
    const name = parse("a.B.example.org");
    assert.equal(name.replaceSuffix(parse("EXAMPLE.org"), parse("net")).toString(), "a.B.net.");
    assert.equal(name.replaceSuffix(Name.root, parse("x")).toString(), "a.B.example.org.x.");
    assert.equal(name.replaceSuffix(name, Name.root), Name.root);
    assert.throws(() => name.replaceSuffix(parse("b.example"), Name.root), RangeError);
    assert.throws(() => name.replaceSuffix(parse("org"), parse(LONGEST)), NameError);
  });

  it("compare gives the canonical order of RFC 4034 section 6.1", () => {
    const ordered = [
      ".",
      "example.",
      "a.example.",
      "yljkjljk.a.example.",
      "Z.a.example.",
      "zABC.a.EXAMPLE.",
      "z.example.",
      "\\001.z.example.",
      "*.z.example.",
      "\\200.z.example.",
    ];
    const shuffled = ordered.toReversed().map(parse);
    assert.deepEqual(
      shuffled.sort((a, b) => a.compare(b)).map((name) => name.toString()),
      ordered,
    );
    // A missing octet sorts before a zero octet.
    assert.ok(parse("a.example").compare(parse("a\\000.example")) < 0);
    // Letters sort as lower case, after the octets between Z and a.
    assert.ok(parse("_.example").compare(parse("A.example")) < 0);
  });

  it("compare is an order that agrees with equals", () => {
    fc.assert(
      fc.property(anyName, anyName, anyName, (a, b, c) => {
        assert.equal(Math.sign(a.compare(b)) + Math.sign(b.compare(a)), 0);
        assert.equal(a.compare(b) === 0, a.equals(b));
        if (a.compare(b) <= 0 && b.compare(c) <= 0) assert.ok(a.compare(c) <= 0);
      }),
    );
  });
});
