import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fromHex, toHex } from "./octets.ts";
import { opaqueText, PresentationError } from "./rdata-scanner.ts";
import { canonicalData, formatData, parseRecord } from "./resource-record.ts";

const TARGET = "00"; // The root.

/** The octets of the parameters in `SVCB 1 .`, and their printed text. */
function read(parameters: string): { octets: string; printed: string } {
  const record = parseRecord(`a. SVCB 1 . ${parameters}`);
  const octets = toHex(canonicalData(record));
  assert.ok(octets.startsWith(`0001${TARGET}`));
  return { octets: octets.slice(6), printed: formatData(record).slice(4) };
}

function printed(parameterOctets: string): string {
  const octets = fromHex(`0001${TARGET}${parameterOctets.replaceAll(" ", "")}`);
  assert.ok(octets);
  return formatData(parseRecord(`a. SVCB ${opaqueText(octets)}`)).slice(4);
}

// The valid examples of RFC 9460 appendix D are in fixtures/record-examples.txt.
describe("service parameters", () => {
  const same: [one: string, other: string][] = [
    ["port=53", 'port="53"'],
    ["port=53", "port=\\053\\051"],
    ["ipv4hint=192.0.2.1,192.0.2.2", 'ipv4hint="192\\.0.2.1,192.0.2.2"'],
    ["alpn=h2", "key1=\\002h2"],
    ["alpn=h2", 'key1="\\002h2"'],
    ["port=53", "key3=\\0005"],
    ["alpn=h2 no-default-alpn", "no-default-alpn alpn=h2"],
    ["alpn=h2 no-default-alpn", "key2 alpn=h2"],
    ["alpn=h2 no-default-alpn", 'no-default-alpn="" alpn=h2'],
    ["alpn=h2 no-default-alpn", "no-default-alpn= alpn=h2"],
    ["ech", 'ech=""'],
    ["key667", 'key667=""'],
    ["key667", "key667="],
    ["mandatory=alpn,port alpn=h2 port=1", "port=1 mandatory=key3,key1 alpn=h2"],
    ["ech=AAAA", 'ech="AAAA"'],
    ["ohttp", "key8"],
  ];
  for (const [one, other] of same) {
    it(`${one} is also ${other}`, () => assert.deepEqual(read(other), read(one)));
  }

  const lists: [text: string, octets: string, printed?: string][] = [
    ["alpn=h2,h3", "0001 0006 026832 026833", 'alpn="h2,h3"'],
    ["alpn=a\\\\,b", "0001 0004 03612c62", 'alpn="a\\\\,b"'],
    ["alpn=a\\\\\\\\b", "0001 0004 03615c62", 'alpn="a\\\\\\\\b"'],
    ['alpn="a b"', "0001 0004 03612062"],
    ['alpn="\\001"', "0001 0002 0101"],
    ['alpn="\\000,\\255"', "0001 0004 0100 01ff"],
    [`alpn="${"x".repeat(255)}"`, `0001 0100 ff${"78".repeat(255)}`],
  ];
  for (const [text, octets, printed = text] of lists) {
    it(`${text.slice(0, 60)} is ${octets.slice(0, 60)}`, () => {
      assert.deepEqual(read(text), { octets: octets.replaceAll(" ", ""), printed });
    });
  }

  const refused: [text: string, reason: RegExp][] = [
    // RFC 9460 appendix D.3.
    ["key123=abc key123=def", /key123 given twice/],
    ["mandatory", /bad value.*mandatory/],
    ["alpn", /bad value.*alpn/],
    ["port", /bad value.*port/],
    ["ipv4hint", /bad value.*ipv4hint/],
    ["ipv6hint", /bad value.*ipv6hint/],
    ["no-default-alpn=abc", /bad value.*no-default-alpn/],
    ["mandatory=key123", /key123 is mandatory but missing/],
    ["mandatory=mandatory", /mandatory names itself/],
    ["mandatory=key123,key123 key123=abc", /mandatory names key123 twice/],
    // Section 7.1.1.
    ["no-default-alpn", /needs alpn/],
    ["key2", /needs alpn/],
    // Further ones.
    ["ohttp=1", /bad value/],
    ["mandatory=", /bad value/],
    ["mandatory=alpn, alpn=h2", /bad value/],
    ["mandatory=nonsense", /bad value/],
    ["alpn=", /bad value/],
    ["alpn=h2,,h3", /bad value/],
    ["alpn=,h2", /bad value/],
    ["alpn=h2,", /bad value/],
    [`alpn=${"x".repeat(256)}`, /bad value/],
    ["alpn=\\256", /bad value/],
    ["alpn=h2 alpn=h3", /given twice/],
    ["alpn=h2 key1=x", /alpn given twice/],
    ["port=65536", /bad value/],
    ["port=-1", /bad value/],
    ["port=53,54", /bad value/],
    ['port=""', /bad value/],
    ["ipv4hint=192.0.2", /bad value/],
    ["ipv4hint=192.0.2.1,", /bad value/],
    ["ipv4hint=::1", /bad value/],
    ["ipv6hint=192.0.2.1", /bad value/],
    ["ech=A", /bad value/],
    ["dohpath", /bad value/],
    ["ALPN=h2", /unknown service parameter "ALPN"/],
    ["nonsense=1", /unknown service parameter "nonsense"/],
    ["=1", /unknown service parameter ""/],
    ["key", /unknown service parameter/],
    ["key01=a", /unknown service parameter/],
    ["key65536=a", /unknown service parameter/],
    ['"port=53"', /unknown service parameter/],
    ['alpn="h2"x', /no space/],
    ['alpn=h2"x"', /no space/],
    ['alpn="h2""h3"', /no space/],
    ['alpn= "h2"', /bad value/],
  ];
  for (const [text, reason] of refused) {
    it(`refuses ${text.slice(0, 60)}`, () => {
      assert.throws(
        () => read(text),
        (error: unknown) => {
          assert.ok(error instanceof PresentationError, `${error}`);
          assert.match(error.reason, reason);
          return true;
        },
      );
    });
  }

  const odd: [octets: string, text: string][] = [
    ["0001 0000", "key1"],
    ["0001 0001 00", 'key1="\\000"'],
    ["0001 0002 0368", 'key1="\\003h"'],
    ["0003 0001 35", 'key3="5"'],
    ["0003 0003 003500", 'key3="\\0005\\000"'],
    ["0004 0003 c00002", 'key4="\\192\\000\\002"'],
    ["0008 0001 00", 'key8="\\000"'],
    ["0001 0003 026832 0002 0001 00", 'alpn="h2" key2="\\000"'],
  ];
  for (const [octets, text] of odd) {
    it(`prints ${octets}, which are invalid for their key, as ${text}`, () => {
      assert.equal(printed(octets), text);
      assert.equal(read(text).octets, octets.replaceAll(" ", ""));
    });
  }

  it("are written in ascending order, whatever their order in the text", () => {
    const record = parseRecord("a. HTTPS 1 . key9=b key7=a");
    assert.equal(toHex(canonicalData(record)), "000100000700016100090001" + "62");
  });

  it("may be as many as a record holds", () => {
    const keys = Array.from({ length: 16_000 }, (_, index) => `key${index + 10}`);
    assert.equal(read(keys.join(" ")).octets.length, 16_000 * 8);
  });
});
