import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type FieldSink, HpackDecoder, HpackError, hpackScratch } from "./hpack-decoder.ts";
import { encodeFields } from "./hpack-encoder.ts";
import { FieldName } from "./hpack-fields.ts";
import { RequestHead } from "./request-head.ts";

/** Names as numbers, and values. */
class Fields implements FieldSink {
  readonly all: (readonly [number, string])[] = [];
  size = 0;

  field(name: number, octets: Uint8Array, start: number, end: number, size: number): void {
    this.all.push([name, Buffer.from(octets.subarray(start, end)).toString("latin1")]);
    this.size += size;
  }
}

function decoder(): (hex: string) => Fields {
  const hpack = new HpackDecoder(hpackScratch());
  return (hex) => {
    const fields = new Fields();
    const octets = Buffer.from(hex.replaceAll(" ", ""), "hex");
    hpack.decode(octets, 0, octets.length, fields);
    return fields;
  };
}

const { METHOD, SCHEME, PATH, AUTHORITY, OTHER, FORBIDDEN } = FieldName;

for (const [title, first, second, third] of [
  [
    "RFC 7541 appendix C.3",
    "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
    "8286 84be 5808 6e6f 2d63 6163 6865",
    "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
  ],
  [
    "RFC 7541 appendix C.4, with Huffman's code",
    "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
    "8286 84be 5886 a8eb 1064 9cbf",
    "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
  ],
] as const) {
  test(title, () => {
    const decode = decoder();
    const common = [
      [METHOD, "GET"],
      [SCHEME, "http"],
      [PATH, "/"],
      [AUTHORITY, "www.example.com"],
    ];
    const one = decode(first);
    assert.deepEqual(one.all, common);
    // Both texts and 32 of each field.
    assert.equal(one.size, 42 + 43 + 38 + 57);
    const two = decode(second);
    assert.deepEqual(two.all, [...common, [OTHER, "no-cache"]]);
    const three = decode(third);
    assert.deepEqual(three.all.slice(1, 4), [
      [SCHEME, "https"],
      [PATH, "/index.html"],
      [AUTHORITY, "www.example.com"],
    ]);
    assert.deepEqual(three.all[4], [OTHER, "custom-value"]);
    // 62 is the newest entry, and 64 the oldest; values without a use here are not kept.
    assert.deepEqual(decode("bebfc0").all, [
      [OTHER, ""],
      [OTHER, ""],
      [AUTHORITY, "www.example.com"],
    ]);
    assert.equal(decode("bebfc0").size, 54 + 53 + 57);
  });
}

describe("the dynamic table", () => {
  /** `:authority` with a value of this many octets, with indexing (0x41). */
  const kept = (octets: number): string => {
    const rest = octets - 127;
    assert.ok(rest >= 128);
    const length = [0x7f, (rest & 0x7f) | 0x80, rest >> 7];
    return Buffer.concat([Buffer.from([0x41, ...length]), Buffer.alloc(octets, "a")]).toString("hex");
  };

  test("holds 4,096 octets, of which each entry costs 32 more", () => {
    const decode = decoder();
    // 10 + 2006 + 32 = 2048: two fit, and the third evicts the first.
    for (let count = 0; count < 3; count++) decode(kept(2006));
    assert.equal(decode("bebf").all.length, 2);
    assert.throws(() => decode("c0"), HpackError);
  });

  test("is emptied by an entry larger than itself", () => {
    const decode = decoder();
    decode(kept(300));
    decode(kept(5000));
    assert.throws(() => decode("be"), HpackError);
  });

  test("shrinks and grows as the client says", () => {
    const decode = decoder();
    decode(kept(300));
    decode("20 3fe11f 82");
    assert.throws(() => decode("be"), HpackError);
    decode(kept(300));
    assert.equal(decode("be").all.length, 1);
  });

  test("lasts as long as the connection", () => {
    const decode = decoder();
    for (let count = 0; count < 1000; count++) {
      decode(`4001${(0x61 + (count % 26)).toString(16)}0130`);
      assert.equal(decode(count < 115 ? "be" : "bec2").all.length, count < 115 ? 1 : 2);
    }
  });
});

for (const [what, hex] of [
  ["index 0", "80"],
  ["an index beyond the tables", "be"],
  ["a name beyond the tables", "7e 00"],
  ["an unterminated index", "ff ffffffffff"],
  ["a text longer than the block", "00 05 6161"],
  ["a text without a length", "00"],
  ["no value", "00 01 61"],
  ["an invalid Huffman code", "00 81 1c 00"],
  ["a table larger than allowed", "3fe21f"],
  ["a table size update after a field", "82 20"],
] as const) {
  test(`refuses ${what}`, () => {
    assert.throws(() => decoder()(hex), HpackError);
  });
}

for (const [what, name, value] of [
  ["upper case", "Accept", "x"],
  ["a space in a name", "a b", "x"],
  ["a colon in a name", "a:b", "x"],
  ["an octet above ASCII in a name", "\u00e4", "x"],
  ["a line feed in a value", "a", "x\ny"],
  ["a NUL in a value", "a", "x\0"],
  ["a pseudo-header of responses", ":status", "200"],
  ["an unknown pseudo-header", ":protocol", "x"],
  ["a connection-specific header", "connection", "close"],
  ["another connection-specific header", "transfer-encoding", "chunked"],
] as const) {
  test(`reports ${what}`, () => {
    const block = encodeFields([[name, value]]);
    assert.equal(decoder()(Buffer.from(block).toString("hex")).all[0]?.[0], FORBIDDEN);
  });
}

describe("a request", () => {
  const BASE = [
    [":method", "GET"],
    [":scheme", "https"],
    [":path", "/dns-query"],
  ] as const;

  function read(fields: readonly (readonly [string, string | number])[]): RequestHead {
    const block = encodeFields(fields);
    const head = new RequestHead();
    new HpackDecoder(hpackScratch()).decode(block, 0, block.length, head);
    return head;
  }

  test("is decoded", () => {
    const head = read([
      ...BASE,
      [":authority", "dns"],
      ["content-length", 17],
      ["content-type", "application/dns-message"],
      ["te", "trailers"],
      ["traceparent", "00-1-2-01"],
    ]);
    assert.ok(head.isRequest);
    assert.equal(head.method, "GET");
    assert.equal(head.pathText, "/dns-query");
    assert.equal(head.contentLength, 17);
    assert.equal(head.contentType, "application/dns-message");
    assert.deepEqual(head.trace, { traceparent: "00-1-2-01" });
    head.reset();
    assert.ok(!head.isRequest);
    assert.equal(head.trace, undefined);
  });

  for (const [what, fields] of [
    ["nothing", []],
    ["no method", BASE.slice(1)],
    ["no scheme", [BASE[0], BASE[2]]],
    ["no path", BASE.slice(0, 2)],
    ["an empty path", [...BASE.slice(0, 2), [":path", ""]]],
    ["two paths", [...BASE, [":path", "/"]]],
    ["a pseudo-header after others", [...BASE, ["accept", "x"], [":authority", "dns"]]],
    ["a length that is not a number", [...BASE, ["content-length", "1x"]]],
    ["two lengths", [...BASE, ["content-length", 1], ["content-length", 2]]],
    ["te other than trailers", [...BASE, ["te", "gzip"]]],
    ["a connection-specific header", [...BASE, ["upgrade", "x"]]],
  ] as const) {
    test(`is malformed with ${what}`, () => {
      assert.ok(!read(fields).isRequest);
    });
  }

  test("is too large with a header list above 16 KiB", () => {
    const fields = Array.from({ length: 400 }, (_, index) => ["a", String(index % 10)] as const);
    assert.ok(!read([...BASE, ...fields]).isTooLarge);
    assert.ok(read([...BASE, ...fields, ...fields]).isTooLarge);
  });
});
