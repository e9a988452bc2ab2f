import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { encodeObject } from "../../../../test/support/kubernetes-api/protobuf.ts";
import {
  EndpointSchema,
  EndpointSliceSchema,
  ObjectMetaSchema,
  ServiceSchema,
  UnknownSchema,
} from "./kubernetes-pb.ts";
import { MessageReader, ProtobufError, type ProtobufMessage } from "./read-message.ts";
import { TextPool } from "./text-pool.ts";

const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom("", "zone-a", "zone-b", "x".repeat(300)),
);
const slice = fc.record(
  {
    kind: fc.constant("EndpointSlice"),
    metadata: fc.record(
      {
        name: text,
        generateName: text,
        uid: text,
        generation: fc.nat(),
        labels: fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), text),
      },
      { requiredKeys: [] },
    ),
    endpoints: fc.array(
      fc.record(
        {
          addresses: fc.array(text, { maxLength: 3 }),
          conditions: fc.record({ ready: fc.boolean(), serving: fc.boolean() }, { requiredKeys: [] }),
          targetRef: fc.record({ kind: text, namespace: text, name: text }, { requiredKeys: [] }),
          zone: text,
          nodeName: text,
        },
        { requiredKeys: [] },
      ),
      { maxLength: 5 },
    ),
    ports: fc.array(fc.record({ name: text, port: fc.integer({ min: -1, max: 0x7fff_ffff }) }), {
      maxLength: 3,
    }),
    addressType: text,
  },
  { requiredKeys: ["kind"] },
);

/** The object alone, out of its envelope. */
function encoded(object: Readonly<Record<string, unknown>>): Uint8Array {
  return fromBinary(UnknownSchema, encodeObject(object).subarray(4)).raw;
}

/** Readers treat empty and missing alike. */
function withoutEmpty(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, each]) => [key, withoutEmpty(each)] as const);
  return Object.fromEntries(
    entries.filter(([, each]) => each !== "" && each !== 0 && !(Array.isArray(each) && each.length === 0)),
  );
}

describe("a message", () => {
  test("is read as the library of the descriptions reads it", () => {
    const reader = new MessageReader(EndpointSliceSchema);
    const texts = new TextPool();
    fc.assert(
      fc.property(slice, (object) => {
        const octets = encoded(object);
        const expected = toJson(EndpointSliceSchema, fromBinary(EndpointSliceSchema, octets));
        assert.deepEqual(withoutEmpty(reader.read(octets, texts)), withoutEmpty(expected));
      }),
    );
  });

  test("may be read without some of its fields, at any depth", () => {
    const reader = new MessageReader(EndpointSliceSchema).wanting({
      unwanted: [EndpointSchema.field.targetRef],
      keys: new Map(),
    });
    const endpoint = { addresses: ["10.0.0.1"], targetRef: { kind: "Pod", name: "web-0" }, zone: "a" };
    const octets = encoded({ kind: "EndpointSlice", endpoints: [endpoint] });
    assert.deepEqual(reader.read(octets, new TextPool()), {
      endpoints: [{ addresses: ["10.0.0.1"], zone: "a" }],
    });
  });

  test("may be read with some keys of its maps alone", () => {
    const reader = new MessageReader(ServiceSchema).wanting({
      unwanted: [],
      keys: new Map([
        [ObjectMetaSchema.field.labels, ["app", "tier"]],
        [ObjectMetaSchema.field.annotations, []],
      ]),
    });
    const long = "a".repeat(200);
    const octets = encoded({
      kind: "Service",
      metadata: {
        name: "web",
        labels: { app: "shop", apo: "no", ap: "no", tier: "front", [long]: "no" },
        annotations: { app: "no" },
      },
    });
    // What has a key of more than 127 octets is read: none of these has one.
    assert.deepEqual(reader.read(octets, new TextPool()), {
      metadata: { name: "web", labels: { app: "shop", tier: "front", [long]: "no" } },
    });
  });

  test("has an error of its own for anything else", () => {
    const reader = new MessageReader(ServiceSchema);
    const valid = encoded({
      kind: "Service",
      metadata: { name: "web", labels: { a: "b" } },
      spec: { type: "x" },
    });
    const damaged = fc.tuple(fc.nat(), fc.nat(255)).map(([at, octet]) => {
      const copy = Buffer.from(valid);
      copy[at % copy.length] = octet;
      return copy;
    });
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array(), damaged), (octets) => {
        let message: ProtobufMessage | undefined;
        try {
          message = reader.read(octets, new TextPool());
        } catch (error) {
          assert.ok(error instanceof ProtobufError, String(error));
        }
        if (message !== undefined) JSON.stringify(message);
      }),
    );
    assert.throws(() => reader.read(Buffer.from("0a05", "hex"), new TextPool()), /longer than its message/);
  });
});

describe("texts", () => {
  test("are what the octets say, whatever was read before", () => {
    const pool = new TextPool();
    fc.assert(
      fc.property(fc.array(text), (all) => {
        for (const each of all) {
          const octets = Buffer.from(`<${each}>`);
          assert.equal(pool.read(octets, 1, octets.length - 1), octets.subarray(1, -1).toString());
        }
      }),
    );
  });

  test("are kept once they came twice, and what comes once does not drive them out", () => {
    const pool = new TextPool();
    let made = 0;
    const read = (text: string): string => {
      const octets = Buffer.from(text);
      const toText = octets.toString.bind(octets);
      octets.toString = (...words) => {
        made++;
        return toText(...words);
      };
      return pool.read(octets, 0, octets.length);
    };
    for (let time = 0; time < 3; time++) assert.equal(read("production"), "production");
    assert.equal(made, 2);
    for (let address = 0; address < 10_000; address++) read(`10.1.${address >> 8}.${address & 255}`);
    assert.equal(made, 10_002);
    read("production");
    assert.equal(made, 10_002);
  });
});
