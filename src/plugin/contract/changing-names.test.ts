import assert from "node:assert/strict";
import { test } from "node:test";
import { Name } from "../../dns/name.ts";
import { ChangingNames } from "./changing-names.ts";

function has(names: ChangingNames, text: string): boolean {
  const { folded } = Name.parse(text);
  // As it stands among others.
  const octets = Uint8Array.of(7, 7, ...folded, 7);
  return names.has(octets, 2, 2 + folded.length);
}

test("a name changes if it is at or below a zone that does", () => {
  const names = new ChangingNames(() => []);
  assert.equal(names.isEmpty, true);
  assert.equal(has(names, "."), false);
  names.addZones([Name.parse("Cluster.local."), Name.parse("cluster.local."), Name.parse("ip6.arpa.")]);
  assert.equal(names.isEmpty, false);
  for (const text of ["cluster.local.", "a.b.CLUSTER.local.", "1.ip6.arpa."])
    assert.equal(has(names, text), true, text);
  for (const text of [".", "local.", "xcluster.local.", "cluster.local.example.", "arpa."])
    assert.equal(has(names, text), false, text);
  names.addZones([Name.root]);
  assert.equal(has(names, "local."), true);
});

test("with very many zones every name counts as one that changes", () => {
  const names = new ChangingNames(() => []);
  const zones = Array.from({ length: 20_001 }, (_, index) => Name.parse(`z${index}.example.`));
  names.addZones(zones.slice(0, -1));
  assert.equal(has(names, "www.example.org."), false);
  assert.equal(has(names, "www.z19999.example."), true);
  names.addZones(zones);
  assert.equal(has(names, "www.example.org."), true);
});

test("all instances that keep answers hear of a change", () => {
  const heard: string[] = [];
  const instance = (label: string) => ({
    forget: (changed: readonly Name[]) => void heard.push(`${label} ${changed.join()}`),
  });
  const names = new ChangingNames(() => [instance("one"), {}, instance("two")]);
  names.tell([Name.parse("a."), Name.parse("b.")]);
  assert.deepEqual(heard, ["one a.,b.", "two a.,b."]);
});
