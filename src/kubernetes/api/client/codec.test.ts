import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  encodeList,
  encodeObject,
  encodeWatchFrame,
} from "../../../../test/support/kubernetes-api/protobuf.ts";
import { member, textMember } from "../../objects/json.ts";
import { ApiContentError, ApiStatusError } from "../access/api-error.ts";
import { decodeEvent, decodeFailure, decodePage, formatOf, type ObjectFormat } from "./codec.ts";
import { BodyReader, FrameSplitter } from "./frames.ts";
import { RESOURCES } from "./resource.ts";

const [services] = RESOURCES.services;
const service = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", namespace: "shop", resourceVersion: "7", labels: { a: "b" }, generation: 3 },
  spec: {
    clusterIP: "10.96.0.1",
    clusterIPs: ["10.96.0.1"],
    ports: [{ name: "http", port: 80, targetPort: "web" }],
  },
};

describe("frames", () => {
  const frames = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 20 });
  for (const format of ["json", "protobuf"] as const) {
    it(`come out of ${format} however it is cut`, () => {
      fc.assert(
        fc.property(
          frames,
          fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }),
          (contents, sizes) => {
            const lines = contents.map((content) =>
              content.map((octet) => (format === "json" && octet === 10 ? 11 : octet)),
            );
            const body = Buffer.concat(lines.map((line) => frame(line, format)));
            const splitter = new FrameSplitter(format);
            const found: Uint8Array[] = [];
            for (let at = 0, turn = 0; at < body.length; turn++) {
              const size = sizes[turn % sizes.length] ?? 1;
              for (const each of splitter.push(body.subarray(at, at + size)))
                found.push(Uint8Array.from(each));
              at += size;
            }
            assert.deepEqual(found, lines);
            assert.equal(splitter.isIncomplete, false);
          },
        ),
      );
    });
  }

  it("may be as large as the largest object, and leave what comes next as it is", () => {
    const contents = [
      Buffer.alloc(100, "a"),
      Buffer.alloc(1_000_000, "b"),
      Buffer.alloc(70_000, "c"),
      Buffer.alloc(3, "d"),
    ];
    const body = Buffer.concat(contents.map((content) => frame(content, "protobuf")));
    const splitter = new FrameSplitter("protobuf");
    const found: Buffer[] = [];
    for (let at = 0; at < body.length; at += 16_384)
      for (const each of splitter.push(body.subarray(at, at + 16_384))) found.push(Buffer.from(each));
    assert.deepEqual(found, contents);
  });

  it("may not be of any length", () => {
    assert.throws(() => new FrameSplitter("protobuf").push(Buffer.from("7fffffff", "hex")), ApiContentError);
  });
});

describe("objects", () => {
  it("are the same from JSON and from protobuf", () => {
    const event = decodeEvent(encodeWatchFrame("ADDED", service).subarray(4), "protobuf", services);
    assert.equal(event.type, "ADDED");
    assert.equal(textMember(member(event.object, "metadata"), "resourceVersion"), "7");
    const json = decodeEvent(
      Buffer.from(JSON.stringify({ type: "ADDED", object: service })),
      "json",
      services,
    );
    assert.equal(textMember(member(json.object, "metadata"), "resourceVersion"), "7");
  });

  it("come in pages with a token", () => {
    const list = {
      kind: "ServiceList",
      apiVersion: "v1",
      metadata: { resourceVersion: "9", continue: "x" },
      items: [service],
    };
    const forms: [ObjectFormat, Uint8Array][] = [
      ["json", Buffer.from(JSON.stringify(list))],
      ["protobuf", encodeList(list, "Service")],
    ];
    for (const [format, octets] of forms) {
      const page = decodePage(octets, format, services);
      assert.deepEqual([page.resourceVersion, page.continueToken], ["9", "x"]);
      assert.deepEqual(
        [...page.objects].map((object) => textMember(member(object, "metadata"), "name")),
        ["web"],
      );
    }
  });

  it("never do more harm than an error of their own", () => {
    const read = (octets: Uint8Array, format: ObjectFormat) => {
      for (const decode of [decodeEvent, decodePage]) {
        try {
          const decoded = decode(octets, format, services);
          if ("objects" in decoded) for (const _ of decoded.objects);
        } catch (error) {
          assert.ok(error instanceof ApiContentError, String(error));
        }
      }
    };
    const valid = [encodeObject(service), encodeWatchFrame("ADDED", service).subarray(4)];
    const damaged = fc.tuple(fc.constantFrom(...valid), fc.nat(), fc.nat(255)).map(([octets, at, octet]) => {
      const copy = Buffer.from(octets);
      copy[at % copy.length] = octet;
      return copy;
    });
    fc.assert(
      fc.property(
        fc.oneof(fc.uint8Array(), damaged),
        fc.constantFrom<ObjectFormat>("json", "protobuf"),
        read,
      ),
    );
    fc.assert(fc.property(fc.json(), (text) => read(Buffer.from(text), "json")));
  });
});

describe("failures", () => {
  const status = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: "Expired",
    message: "too old",
    code: 410,
    details: { retryAfterSeconds: 2 },
  };

  it("are read from a Status in either form", () => {
    for (const [octets, type] of [
      [Buffer.from(JSON.stringify(status)), "application/json"],
      [encodeObject(status), "application/vnd.kubernetes.protobuf"],
    ] as const) {
      const failure = decodeFailure(octets, type, 410, undefined);
      assert.deepEqual(
        [failure.reason, failure.message, failure.retryAfterMs, failure.isExpired],
        ["Expired", "too old", 2000, true],
      );
    }
    const event = decodeEvent(encodeWatchFrame("ERROR", status).subarray(4), "protobuf", services);
    assert.ok(event.object instanceof ApiStatusError && event.object.isExpired);
  });

  it("are read from anything else as text", () => {
    const failure = decodeFailure(Buffer.from("<html>\n  busy"), "text/html", 503, "7");
    assert.deepEqual([failure.code, failure.message, failure.retryAfterMs], [503, "<html> busy", 7000]);
  });

  it("are forms that were not asked for", () => {
    for (const type of ["", "text/html", "application/yaml", "application/jsonp"])
      assert.throws(() => formatOf(type), ApiContentError);
    assert.equal(formatOf("application/json; charset=utf-8"), "json");
    assert.equal(formatOf("application/vnd.kubernetes.protobuf;stream=watch"), "protobuf");
  });
});

function frame(content: Uint8Array, format: ObjectFormat): Buffer {
  if (format === "json") return Buffer.concat([content, Buffer.from("\n")]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  return Buffer.concat([length, content]);
}

describe("bodies", () => {
  const chunks = async function* (...texts: string[]) {
    for (const text of texts) yield Buffer.from(text);
  };

  it("come one after the other in the same memory, whatever their lengths", async () => {
    const reader = new BodyReader();
    const long = "x".repeat(50_000);
    const first = await reader.read(chunks("a long ", long));
    assert.equal(Buffer.from(first).toString(), `a long ${long}`);
    const second = await reader.read(chunks("short"));
    assert.equal(Buffer.from(second).toString(), "short");
    assert.equal(second.buffer, first.buffer);
    assert.equal((await reader.read(chunks())).length, 0);
    reader.release();
    assert.notEqual((await reader.read(chunks("anew"))).buffer, first.buffer);
  });

  it("may not be too long", async () => {
    await assert.rejects(new BodyReader().read(chunks("123", "456"), 5), ApiContentError);
  });
});
