import assert from "node:assert/strict";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import type { Explanation } from "../../plugin/contract/explanation.ts";
import { formatExplanation } from "./human.ts";

const EXPLANATION: Explanation = {
  name: "www.example.org.",
  type: "A",
  class: "IN",
  client: "192.0.2.9",
  transport: "tcp",
  flags: ["rd"],
  server: { version: "Portolan-1.2.3", threads: 4, configuration: "" },
  listener: "dns://:53",
  block: ".:53, Corefile:1",
  view: "inside",
  steps: [
    { depth: 0, plugin: "alias", decision: "passes on", notes: [], milliseconds: 0.25 },
    {
      depth: 0,
      plugin: "forward",
      decision: "answers NXDOMAIN",
      asked: "elsewhere.example.org. A",
      notes: [{ text: "asks 192.0.2.53:53 over tcp" }],
      milliseconds: 123.4,
    },
  ],
  message: {
    rcode: "NXDOMAIN",
    flags: ["rd", "ra"],
    answer: ["www.example.org. 300 IN CNAME elsewhere.example.org."],
    authority: ["org. 5 IN SOA a.org. b.org. 1 2 3 4 5"],
    additional: [],
    edns: { udpSize: 1232, dnssecOk: true },
    size: 99,
    hasAnswer: false,
  },
  plugin: "forward",
  error: undefined,
  milliseconds: 123.7,
};

test("a query's way, for people", () => {
  assert.deepEqual(formatExplanation(EXPLANATION, { colour: false }).split("\n"), [
    "www.example.org. A  asked by 192.0.2.9 over TCP",
    "",
    "  server       Portolan-1.2.3, the running server: the first of 4 threads, with its own connections and the shared cache",
    "  listener     dns://:53",
    "  block        .:53, Corefile:1",
    "  view         inside",
    "",
    "   1  alias        passes on                                           0.25 ms",
    "   2  forward      answers NXDOMAIN                                     123 ms",
    "                   - asked for elsewhere.example.org. A: an earlier plugin changed the question",
    "                   - asks 192.0.2.53:53 over tcp",
    "",
    "  answer       NXDOMAIN, from forward, after 124 ms",
    "",
    ";; ->>HEADER<<- opcode: QUERY, status: NXDOMAIN",
    ";; flags: qr rd ra; QUERY: 1, ANSWER: 1, AUTHORITY: 1, ADDITIONAL: 1",
    "",
    ";; OPT PSEUDOSECTION:",
    "; EDNS: version: 0, flags: do; udp: 1232",
    "",
    ";; QUESTION SECTION:",
    ";www.example.org.       IN  A",
    "",
    ";; ANSWER SECTION:",
    "www.example.org.   300  IN  CNAME  elsewhere.example.org.",
    "",
    ";; AUTHORITY SECTION:",
    "org.               5    IN  SOA    a.org. b.org. 1 2 3 4 5",
    "",
    ";; MSG SIZE  rcvd: 99",
    "",
  ]);
});

test("colours do not change the words", () => {
  const coloured = formatExplanation(EXPLANATION, { colour: true });
  assert.ok(coloured.includes("\u001b[31mNXDOMAIN\u001b[39m"));
  const plain = stripVTControlCharacters(coloured);
  assert.equal(plain, formatExplanation(EXPLANATION, { colour: false }));
});

test("a dropped query has no message", () => {
  const dropped = { ...EXPLANATION, message: undefined, plugin: undefined };
  assert.match(
    formatExplanation(dropped, { colour: false }),
    /answer +none: the query is dropped, after 124 ms\n$/,
  );
  const late = { ...dropped, error: "no answer within 8 s: gave up waiting" };
  assert.match(formatExplanation(late, { colour: false }), /answer +no answer within 8 s: gave up waiting/);
});
