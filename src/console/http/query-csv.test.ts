import assert from "node:assert/strict";
import { test } from "node:test";
import { queriesAsCsv } from "./query-csv.ts";

test("a name cannot leave its cell, nor be computed", () => {
  const row = {
    ...{ time: 1_700_000_000_123, name: '=cmd("a,b").example.', type: "A", rcode: "-", client: "10.0.0.7" },
    ...{ duration: 0.5, plugin: "", transport: "udp", port: 5353, id: 7, listener: "dns://:53" },
    ...{ answers: 0, size: 0, weight: 1 },
  };
  const [heading, line, ...rest] = queriesAsCsv([row]).split("\r\n");
  assert.match(heading ?? "", /^time,name,type,rcode,client,/);
  assert.equal(
    line,
    '2023-11-14T22:13:20.123Z,"\'=cmd(""a,b"").example.",A,-,10.0.0.7,,0.5,,udp,5353,7,dns://:53,0,,0,1,',
  );
  assert.deepEqual(rest, [""]);
});
