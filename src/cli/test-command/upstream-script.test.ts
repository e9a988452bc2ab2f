import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { makeQuery } from "../../dns/message.ts";
import { recordText } from "../../dns/message-text.ts";
import { Name } from "../../dns/name.ts";
import { Rcode, rcodeName } from "../../dns/numbers.ts";
import { parseRecordType } from "../../dns/type-names.ts";
import { UpstreamScript } from "./upstream-script.ts";

const script = new UpstreamScript(Rcode.NXDOMAIN);
for (const line of [
  "example. 300 IN SOA ns.example. hostmaster.example. 1 2 3 4 5",
  "a.example. 60 IN A 192.0.2.1",
  "a.example. IN A 192.0.2.2",
  "b.example. 60 IN CNAME a.example.",
  "loop.example. 60 IN CNAME loop.example.",
  'x.y.example. 60 IN TXT "deep"',
])
  assert.equal(script.add(line), undefined);

function answer(name: string, type: string) {
  const number = parseRecordType(type) ?? assert.fail(type);
  const reply = script.answer(makeQuery({ name: Name.parse(name), type: number }, { id: 7 }));
  assert.equal(reply.id, 7);
  return [rcodeName(reply.rcode), reply.answer.map(recordText), reply.authority.length] as const;
}

describe("UpstreamScript", () => {
  for (const [name, type, rcode, records, authority] of [
    ["a.example.", "A", "NOERROR", ["a.example. 60 IN A 192.0.2.1", "a.example. 300 IN A 192.0.2.2"], 0],
    ["a.example.", "AAAA", "NOERROR", [], 1],
    ["b.example.", "CNAME", "NOERROR", ["b.example. 60 IN CNAME a.example."], 0],
    ["y.example.", "A", "NOERROR", [], 1],
    ["c.example.", "A", "NXDOMAIN", [], 1],
    ["elsewhere.", "A", "NXDOMAIN", [], 0],
  ] as const) {
    it(`${name} ${type}`, () => assert.deepEqual(answer(name, type), [rcode, records, authority]));
  }

  it("follows aliases, and stops at loops", () => {
    const [rcode, records] = answer("b.example.", "A");
    assert.equal(rcode, "NOERROR");
    assert.equal(records.length, 3);
    assert.equal(answer("loop.example.", "A")[1].length, 11);
  });

  it("says why a line is not a record", () => {
    assert.match(script.add("a.example. 60 IN A here") ?? "", /./);
  });
});
