/** Compares a client that walks its search path itself with one that leaves it to the server. */
import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import type { Next } from "../../plugin/index.ts";
import { PluginTest, records, recordText } from "../../plugin/testing.ts";
import autopath from "./index.ts";

const label = fc.constantFrom("a", "b", "shop", "svc", "X", "example");
const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => `${labels.join(".")}.`);
const said = fc.constantFrom("nothing", "no data", "address");

it("the results are equal, whatever exists", async () => {
  const path = fc.uniqueArray(name, { minLength: 1, maxLength: 5, selector: (text) => text.toLowerCase() });
  await fc.assert(
    fc.asyncProperty(
      path,
      name,
      fc.dictionary(name, said),
      fc.boolean(),
      async (suffixes, typed, world, wait) => {
        const known = new Map(Object.entries(world).map(([key, value]) => [key.toLowerCase(), value]));
        const next: Next = (query) => {
          const what = known.get(query.name.toString().toLowerCase()) ?? "nothing";
          const reply = query.reply({
            rcode: what === "nothing" ? Rcode.NXDOMAIN : Rcode.NOERROR,
            answer: what === "address" ? records(`${query.name} 5 IN A 192.0.2.1`) : [],
          });
          return wait ? Promise.resolve(reply) : reply;
        };
        const instance = {
          searchPathSource: { searchPath: () => suffixes.map((suffix) => Name.parse(suffix)) },
        };
        const plugin = PluginTest.of(autopath, "autopath @source", {
          neighbours: [{ name: "source", instance }],
        });
        await plugin.start();

        const candidates = [...suffixes.map((suffix) => typed + suffix), typed];
        const found = candidates.find(
          (candidate) => (known.get(candidate.toLowerCase()) ?? "nothing") !== "nothing",
        );
        const { reply } = await plugin.ask({ name: candidates[0] ?? "", next });

        assert.equal(reply.rcode, found === undefined ? Rcode.NXDOMAIN : Rcode.NOERROR);
        const expected = found !== undefined && known.get(found.toLowerCase()) === "address" ? [found] : [];
        const addresses = reply.answer.map(recordText).filter((text) => text.includes(" A "));
        assert.deepEqual(
          addresses,
          expected.map((owner) => `${owner} 5 IN A 192.0.2.1`),
        );
        assert.equal(reply.query.name.toString(), candidates[0]);
        // The answer begins at the name of the query, and leads to the address in one step at most.
        const [first] = reply.answer;
        assert.equal(first?.name.toString() ?? candidates[0], candidates[0]);
        assert.ok(reply.answer.length <= 2);
        assert.doesNotThrow(() =>
          reply.encoded.decode(reply.query.bytes.subarray(12, reply.query.questionEnd)),
        );
      },
    ),
    { numRuns: 300 },
  );
});
