import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { formatGoDuration, parseGoDuration } from "./duration.ts";

describe("parseGoDuration", () => {
  const good: [text: string, milliseconds: number][] = [
    ["0", 0],
    ["+0", 0],
    ["-0", 0],
    ["0s", 0],
    ["-0s", 0],
    ["5s", 5_000],
    ["30s", 30_000],
    ["1478s", 1_478_000],
    ["-5s", -5_000],
    ["+5s", 5_000],
    ["5.0s", 5_000],
    ["5.6s", 5_600],
    ["5.s", 5_000],
    [".5s", 500],
    ["1.0s", 1_000],
    ["1.004s", 1_004],
    ["1.005s", 1_005],
    ["100.00100s", 100_001],
    ["10ns", 0.000_01],
    ["11us", 0.011],
    ["12\u00b5s", 0.012],
    ["12\u03bcs", 0.012],
    ["13ms", 13],
    ["14s", 14_000],
    ["15m", 900_000],
    ["16h", 57_600_000],
    ["3h30m", 12_600_000],
    ["1.5h", 5_400_000],
    ["1h30m", 5_400_000],
    ["10.5s4m", 250_500],
    ["-2m3.4s", -123_400],
    ["1h2m3s4ms5us6ns", 3_723_004.005_006],
    ["39h9m14.425s", 140_954_425],
    ["0.3333333333333333333h", 1_199_999.999_999],
    ["0.100000000000000000000h", 360_000],
    ["2562047h47m16.854775807s", 9_223_372_036_854.775],
  ];
  for (const [text, milliseconds] of good) {
    it(`reads ${text}`, () => assert.equal(parseGoDuration(text), milliseconds));
  }

  const bad = [
    "",
    "3",
    "-",
    "+",
    "s",
    ".",
    "-.",
    ".s",
    "+.s",
    "1d",
    "1h30",
    "5 s",
    " 5s",
    "5s ",
    "5S",
    "--5s",
    "+-5s",
    "1e3s",
    "1.2.3s",
    "1,5s",
    "infinite",
    "3000000h",
    "9223372036854775808ns",
    `${"1".repeat(500)}ns`,
  ];
  for (const text of bad) {
    it(`refuses ${JSON.stringify(text.slice(0, 24))}`, () => assert.equal(parseGoDuration(text), undefined));
  }

  it("ends and never throws on arbitrary text", () => {
    fc.assert(fc.property(fc.string(), (text) => void parseGoDuration(text)));
  });
});

describe("formatGoDuration", () => {
  const cases: [milliseconds: number, text: string][] = [
    [0, "0s"],
    [-0, "0s"],
    [0.000_001, "1ns"],
    [0.0011, "1.1µs"],
    [0.011, "11µs"],
    [2.2, "2.2ms"],
    [300, "300ms"],
    [999.999_999, "999.999999ms"],
    [1_000, "1s"],
    [3_300, "3.3s"],
    [5_000, "5s"],
    [60_000, "1m0s"],
    [90_000, "1m30s"],
    [245_000, "4m5s"],
    [245_001, "4m5.001s"],
    [3_600_000, "1h0m0s"],
    [5_400_000, "1h30m0s"],
    [18_367_001, "5h6m7.001s"],
    [-1_500, "-1.5s"],
    [86_400_000, "24h0m0s"],
  ];
  for (const [milliseconds, text] of cases) {
    it(`prints ${milliseconds} ms as ${text}`, () => assert.equal(formatGoDuration(milliseconds), text));
  }

  it("refuses what is no finite number", () => {
    assert.throws(() => formatGoDuration(Number.NaN), RangeError);
    assert.throws(() => formatGoDuration(Number.POSITIVE_INFINITY), RangeError);
  });

  it("prints what parseGoDuration reads back", () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), (milliseconds) => {
        assert.equal(parseGoDuration(formatGoDuration(milliseconds)), milliseconds === 0 ? 0 : milliseconds);
      }),
    );
  });
});
