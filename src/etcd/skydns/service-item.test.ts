import assert from "node:assert/strict";
import { test } from "node:test";
import { Name } from "../../dns/name.ts";
import { keyOfName, matchesPattern, nameOfKey, normalisePrefix, patternOfName } from "./key-path.ts";
import { formatServiceItem, readServiceItem, ServiceItemError } from "./service-item.ts";

const read = (text: string) => readServiceItem("/k", Buffer.from(text));

test("reads every field, in any case, and ignores all others", () => {
  const item = read(
    '{"HOST":"192.0.2.1","Port":80,"priority":5,"weight":3,"text":"t","mail":true,"ttl":9,"targetStrip":1,"group":"g","x":[1]}',
  );
  assert.deepEqual(item, {
    host: "192.0.2.1",
    port: 80,
    priority: 5,
    weight: 3,
    text: "t",
    mail: true,
    ttl: 9,
    targetStrip: 1,
    group: "g",
  });
  assert.deepEqual(read(formatServiceItem(item)), item);
});

for (const text of ["null", "{}", '{"host":null}']) {
  test(`${text} is an empty item`, () => assert.equal(formatServiceItem(read(text)), "{}"));
}

for (const [text, reason] of [
  ["not json", /^\/k: /],
  ["", /^\/k: /],
  ["[]", /a JSON object was expected/],
  ['"str"', /a JSON object was expected/],
  ['{"port":"80"}', /"port" is "80", not a whole number/],
  ['{"ttl":-1}', /"ttl" is -1, not from 0/],
  ['{"host":5}', /"host" is 5, not a string/],
  ['{"mail":1}', /"mail" is 1, not true or false/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () =>
    assert.throws(
      () => read(text),
      (error) => error instanceof ServiceItemError && reason.test(error.message),
    ));
}

test("the labels of a name are in reverse order in its key", () => {
  const name = Name.parse("X1.a.Example.org.");
  const prefix = normalisePrefix("deep/er/");
  assert.equal(keyOfName(prefix, name), "/deep/er/org/example/a/x1");
  assert.ok(nameOfKey(prefix, "/deep/er/org/example/a/x1")?.equals(name));
  assert.equal(nameOfKey(prefix, "/deep/er/org//x"), undefined);
  assert.equal(nameOfKey(prefix, "/elsewhere/org"), undefined);
});

test("a wildcard stands for one label, and keys may continue after it", () => {
  const pattern = patternOfName("/skydns", Name.parse("x1.any.example.org."));
  assert.ok(pattern !== undefined);
  assert.equal(pattern.top, "/skydns/org/example");
  assert.ok(matchesPattern(pattern, "/skydns/org/example/a/x1"));
  assert.ok(matchesPattern(pattern, "/skydns/org/example/b/x1/deeper"));
  assert.ok(!matchesPattern(pattern, "/skydns/org/example/a/x2"));
  assert.ok(!matchesPattern(pattern, "/skydns/org/example/a"));
});
