import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type Message, makeQuery } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { Flag, Rcode } from "../../dns/numbers.ts";
import { parseRecord } from "../../dns/resource-record.ts";
import { parseRecordType } from "../../dns/type-names.ts";
import { differencesOf } from "./differences.ts";
import { LISTED, listedSentence } from "./listed.ts";

function reply(part: {
  readonly rcode?: number;
  readonly flags?: number;
  readonly answer?: readonly string[];
  readonly authority?: readonly string[];
}): {
  readonly message: Message;
  readonly wasTruncated: boolean;
} {
  const records = (lines: readonly string[] = []) => lines.map((line) => parseRecord(line));
  const message: Message = {
    ...makeQuery(
      { name: Name.parse("a.example."), type: 1 },
      { flags: Flag.QR | Flag.RD | (part.flags ?? 0) },
    ),
    rcode: part.rcode ?? Rcode.NOERROR,
    answer: records(part.answer),
    authority: records(part.authority),
  };
  return { message, wasTruncated: false };
}

function kinds(old: Parameters<typeof reply>[0], now: Parameters<typeof reply>[0], strict = false): string[] {
  return differencesOf(reply(old), reply(now), strict).map(({ kind }) => kind);
}

test("order, TTLs, letter case and serials differ only when strict", () => {
  const [one, two] = ["a.example. 60 IN A 192.0.2.1", "a.example. 60 IN A 192.0.2.2"];
  for (const [old, now, kind] of [
    [{ answer: [one, two] }, { answer: [two, one] }, "answer: other order"],
    [{ answer: [one] }, { answer: [one.replace("60", "30")] }, "answer: other TTL"],
    [{ answer: [one] }, { answer: [one.replace("a.ex", "A.ex")] }, "answer: other letter case"],
    [
      { authority: ["example. 5 IN SOA ns.example. h.example. 1 2 3 4 5"] },
      { authority: ["example. 5 IN SOA ns.example. h.example. 9 2 3 4 5"] },
      "authority: other serial",
    ],
  ] as const) {
    assert.deepEqual(kinds(old, now), []);
    assert.deepEqual(kinds(old, now, true), [kind]);
  }
});

test("rcode, flags and records differ, and a different rcode hides the records", () => {
  const one = "a.example. 60 IN A 192.0.2.1";
  assert.deepEqual(kinds({ answer: [one] }, { rcode: Rcode.NXDOMAIN }), [
    "rcode: NOERROR in OLD, NXDOMAIN in NEW",
  ]);
  assert.deepEqual(kinds({ flags: Flag.AA }, { flags: Flag.RA }), [
    "flag aa: only in OLD",
    "flag ra: only in NEW",
  ]);
  assert.deepEqual(kinds({ answer: [one] }, {}), ["answer: only in OLD"]);
  assert.deepEqual(kinds({}, { answer: [one] }), ["answer: only in NEW"]);
  assert.deepEqual(kinds({ answer: [one] }, { answer: [one, one.replace("2.1", "2.7")] }), [
    "answer: more records in NEW",
  ]);
  assert.deepEqual(kinds({ answer: [one] }, { answer: [one.replace("2.1", "2.7")] }), [
    "answer: other records",
  ]);
});

test("silence of one server is a difference, and silence of both is not", () => {
  const silent = { fault: "timeout" };
  assert.deepEqual(differencesOf(silent, silent, false), []);
  assert.deepEqual(
    differencesOf(reply({}), silent, false).map(({ kind }) => kind),
    ["no reply from NEW"],
  );
});

test("each listed difference has its sentence in docs/compatibility.md", () => {
  const page = readFileSync(new URL("../../../docs/compatibility.md", import.meta.url), "utf8").replaceAll(
    /\s+/g,
    " ",
  );
  assert.ok(LISTED.length > 5);
  for (const { sentence } of LISTED) assert.ok(page.includes(sentence), sentence);
});

test("a listed difference is recognized by its question and its replies", () => {
  const sentence = (
    name: string,
    type: string,
    old: Parameters<typeof reply>[0],
    now: Parameters<typeof reply>[0],
  ) =>
    listedSentence(
      { name: Name.parse(name), type: parseRecordType(type) ?? 0, times: 1 },
      reply(old),
      reply(now),
    );
  const denied = { rcode: Rcode.NXDOMAIN };
  assert.match(sentence("shop.svc.cluster.local.", "TXT", denied, {}) ?? "", /^TXT at the name of a zone/);
  assert.match(sentence("1.0.96.10.in-addr.arpa.", "A", denied, {}) ?? "", /^Complete reverse names/);
  assert.equal(sentence("shop.svc.cluster.local.", "A", denied, {}), undefined);
  assert.equal(sentence("shop.svc.cluster.local.", "TXT", {}, denied), undefined);
});
