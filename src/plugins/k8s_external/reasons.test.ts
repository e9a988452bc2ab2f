/** Explain notes of external names. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Rcode } from "../../dns/numbers.ts";
import { startExternal, ZONES } from "./fixtures/external.ts";

const cases: [name: string, type: string, reason: string][] = [
  ["www.example.com.", "A", "the name is in none of its zones"],
  ["web.elsewhere.example.org.", "A", "namespace elsewhere does not exist in the cluster, or is not shown"],
  ["nosuch.shop.example.org.", "A", "there is no service nosuch in namespace shop"],
  [
    "inner.shop.example.org.",
    "A",
    "service inner in namespace shop has neither external IPs nor a load balancer with an address",
  ],
  [
    "none.shop.example.org.",
    "A",
    "service none in namespace shop has no external address, and no endpoint that is ready",
  ],
  [
    "db-9.db.shop.example.org.",
    "A",
    "service db in namespace shop has no external address, and no endpoint db-9 that is ready",
  ],
  [
    "_ftp._tcp.web.shop.example.org.",
    "A",
    "service web in namespace shop has no port _ftp with protocol _tcp",
  ],
  ["web.shop.example.org.", "TXT", "the name exists, without records of type TXT"],
  ["a.b.c.web.shop.example.org.", "A", "no service has a name of this form"],
  ["ns7.dns.example.org.", "A", "no service has a name of this form"],
  ["9.2.0.192.in-addr.arpa.", "PTR", "no service has this external address"],
  [
    "named.shop.example.org.",
    "A",
    "the load balancer has the host name lb.example.com.: resolved through the server",
  ],
  ["named.shop.example.org.", "SRV", "looks up the addresses of lb.example.com. through the server"],
];

describe("the reason", () => {
  let running: Awaited<ReturnType<typeof startExternal>> | undefined;
  before(async () => {
    running = await startExternal({ external: `${ZONES} {\n headless\n}` });
  });
  after(() => running?.stop());

  for (const [name, type, reason] of cases) {
    it(`of ${name} ${type}`, async () => {
      assert.ok(running !== undefined);
      const notes: string[] = [];
      const query = running.plugin.query({ name, type });
      query.trace = { note: (text) => void notes.push(text), enter: () => undefined, leave: () => undefined };
      await running.plugin.chain((asked) => asked.reply({ rcode: Rcode.NXDOMAIN }))(query);
      assert.equal(notes[0], reason);
    });
  }
});

it("notes that a name falls through, and why", async () => {
  const { plugin, stop } = await startExternal({ external: "example.org {\n fallthrough\n}" });
  const notes: string[] = [];
  const query = plugin.query({ name: "inner.shop.example.org." });
  query.trace = { note: (text) => void notes.push(text), enter: () => undefined, leave: () => undefined };
  await plugin.chain((asked) => asked.reply())(query);
  assert.deepEqual(notes, [
    "service inner in namespace shop has neither external IPs nor a load balancer with an address, and headless services are not shown: falls through",
  ]);
  await stop();
});
