/** Explain notes: every rule of the specification gives a reason for its answer. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { RULE_GROUPS } from "../../../test/fixtures/kubernetes/rules.ts";
import type { Query } from "../../plugin/index.ts";
import { makeTestQuery, PluginTest } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const fixture = fileURLToPath(new URL("../../../test/fixtures/kubernetes", import.meta.url));

function absolute(name: string): string {
  return name.endsWith(".") ? name : `${name}.cluster.local.`;
}

/** A query that collects its notes. */
function followed(name: string, type: string, notes: string[]): Query {
  const query = makeTestQuery({ name: absolute(name), type });
  query.trace = { note: (text) => notes.push(text), enter: () => undefined, leave: () => undefined };
  return query;
}

for (const { title, options, zones = "cluster.local in-addr.arpa ip6.arpa", cases } of RULE_GROUPS) {
  // An answer notes its source, and an alias its target.
  const followable = cases.filter(({ expected }) => expected !== "REFUSED");
  if (followable.length === 0) continue;
  describe(`reasons: ${title}`, () => {
    const lines = [`manifests ${fixture}`, ...options].join("\n");
    const plugin = PluginTest.of(kubernetes, `kubernetes ${zones} {\n${lines}\n}`);
    before(() => plugin.start());
    after(() => plugin.stop());

    for (const { name, type } of followable) {
      it(`${name} ${type} has one reason`, async () => {
        const notes: string[] = [];
        await plugin.chain((query) => query.fail())(followed(name, type, notes));
        assert.equal(notes.length, 1, notes.join("\n"));
        assert.match(notes[0] ?? "", /^\S.{10,}[^.\s]$|cluster(set)?\.local\.$/);
      });
    }
  });
}
