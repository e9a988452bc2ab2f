import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyName } from "../../dns/fixtures/arbitraries.ts";
import { Name } from "../../dns/name.ts";
import { ZoneList } from "./zones.ts";

/** The question of a query for the name. */
function asked({ wire }: Name): { bytes: Uint8Array; nameEnd: number } {
  return {
    bytes: Uint8Array.of(...new Uint8Array(12).fill(1), ...wire, 0, 1, 0, 1),
    nameEnd: 12 + wire.length,
  };
}

function zones(...texts: string[]): ZoneList {
  return new ZoneList(texts.map((text) => Name.parse(text)));
}

test("finds by octets the zone that it finds by name", () => {
  let found = 0;
  const property = fc.property(
    anyName,
    fc.array(anyName, { maxLength: 5 }),
    fc.nat(3),
    (name, others, skip) => {
      const list = new ZoneList([...others, ...(skip === 3 ? [] : [name.suffix(skip)])]);
      const zone = list.matchQuery(asked(name));
      assert.equal(String(zone), String(list.match(name)));
      if (zone !== undefined && !zone.isRoot) found++;
    },
  );
  fc.assert(property, { numRuns: 1_000 });
  assert.ok(found > 300, `${found}`);
});

test("takes the longest zone, in any case", () => {
  const list = zones("org", "example.org", ".");
  assert.equal(list.matchQuery(asked(Name.parse("a.EXAMPLE.org")))?.toString(), "example.org.");
  assert.equal(list.matchQuery(asked(Name.parse("example.net"))), Name.root);
});

test("is not led astray by a label that looks like the end of a name", () => {
  const name = Name.parse("x\\003org");
  assert.equal(zones("org").matchQuery(asked(name)), undefined);
  assert.equal(zones("org").match(name), undefined);
});

test("finds nothing in an empty list, nor a zone that is longer than the name", () => {
  assert.equal(zones().matchQuery(asked(Name.parse("example.org"))), undefined);
  assert.equal(zones("www.example.org").matchQuery(asked(Name.parse("example.org"))), undefined);
});
