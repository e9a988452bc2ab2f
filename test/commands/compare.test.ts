/** `portolan compare` between two running servers, and between one and BIND. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Portolan, type PortolanOptions, runPortolan } from "../support/portolan.ts";
import { skipWithoutZonePeer, ZONE_PEERS } from "../support/zone-peers.ts";

const ZONE = `$TTL 60
@ SOA ns h 1 3600 600 86400 60
@ NS ns
ns A 192.0.2.1
web A 192.0.2.2
web A 192.0.2.3
mail MX 10 web
`;

function serve(zone: string, extra = "", options: PortolanOptions = {}): Promise<Portolan> {
  return Portolan.start(
    (port) =>
      `.:${port("dns")} {\n bind 127.0.0.1\n file db.example example.org\n transfer {\n to *\n }\n loadbalance\n ${extra}\n}`,
    { ...options, files: { "db.example": zone } },
  );
}

const addressOf = ({ port }: Portolan): string => `127.0.0.1:${port}`;

test("two servers with the same zone are the same, whatever the order of their records", async () => {
  await using old = await serve(ZONE);
  await using now = await serve(ZONE.replace(" 1 3600", " 2 3600"));
  const ran = await runPortolan(["compare", addressOf(old), addressOf(now), "-zone", "example.org"]);
  assert.deepEqual([ran.code, ran.output, ran.errors], [0, "5 questions: 5 same, 0 different\n", ""]);
});

test("BIND and this server differ from one zone only in the addresses of name servers", {
  skip: skipWithoutZonePeer("bind"),
}, async () => {
  const lines = ZONE.trim().split("\n");
  await using old = await ZONE_PEERS.bind.start("example.org", { lines });
  await using now = await serve(ZONE);
  writeFileSync(join(now.folder, "queries"), "web.example.org A\nweb.example.org TXT\nno.example.org A\n");
  const { code, output, errors } = await runPortolan([
    "compare",
    `127.0.0.1:${old.port}`,
    addressOf(now),
    "-queries",
    join(now.folder, "queries"),
  ]);
  assert.deepEqual(
    [code, output, errors],
    [
      1,
      "3 questions: 2 same, 1 different\n\n1 question: additional: only in OLD\n  web.example.org. A\n    - ns.example.org. 60 IN A 192.0.2.1\n",
      "",
    ],
  );
});

test("differences are grouped by kind, in text and in JSON, with exit code 1", async () => {
  await using old = await serve(ZONE);
  await using now = await serve(ZONE.replace("192.0.2.3", "192.0.2.9").replace("mail MX 10 web\n", ""));
  writeFileSync(
    join(old.folder, "queries"),
    "web.example.org A\nmail.example.org MX\nns.example.org A\nns.example.org A\n",
  );
  const words = [
    "compare",
    "-server",
    addressOf(old),
    "-server",
    addressOf(now),
    "-queries",
    join(old.folder, "queries"),
  ];
  const { code, output } = await runPortolan(words);
  assert.equal(code, 1);
  assert.match(output, /^3 questions \(4 queries\): 1 same, 2 different\n/);
  assert.match(
    output,
    /1 question: answer: other records\n {2}web\.example\.org\. A\n {4}- web\.example\.org\. 60 IN A 192\.0\.2\.3\n {4}\+ web\.example\.org\. 60 IN A 192\.0\.2\.9\n/,
  );
  assert.match(output, /1 question: rcode: NOERROR in OLD, NXDOMAIN in NEW\n {2}mail\.example\.org\. MX\n/);
  const json = await runPortolan([...words, "-format", "json"]);
  const { different, kinds } = JSON.parse(json.output);
  assert.deepEqual([json.code, different, kinds.length], [1, 2, 2]);
});

test("an answer that changes from query to query is not a difference", async () => {
  const extra = 'template IN TXT random.test {\n answer "{{ .Name }} 60 IN TXT {{ .Message.Id }}"\n }';
  await using old = await serve(ZONE, extra);
  await using now = await serve(ZONE, extra);
  writeFileSync(join(old.folder, "queries"), "random.test TXT\n");
  const { code, output } = await runPortolan([
    "compare",
    addressOf(old),
    addressOf(now),
    "-queries",
    join(old.folder, "queries"),
  ]);
  assert.deepEqual(
    [code, output],
    [0, "1 question: 0 same, 0 different, 1 with answers that change from query to query\n"],
  );
});

test("a server that is away, a refused transfer and wrong words end with exit code 2", async () => {
  await using old = await serve(ZONE);
  const closed = `127.0.0.1:${old.portOf("closed")}`;
  writeFileSync(join(old.folder, "queries"), "web.example.org A\n");
  const queries = ["-queries", join(old.folder, "queries")];
  for (const [words, message] of [
    [
      [addressOf(old), closed, ...queries],
      /^NEW \(127\.0\.0\.1:\d+\) does not answer: connection refused\n$/,
    ],
    [
      [addressOf(old), closed, "-zone", "example.net"],
      /^-zone example\.net: .* does not transfer it \(\w+\): allow it/,
    ],
    [[addressOf(old), ...queries], /^compare takes two servers: OLD and NEW\n/],
    [[addressOf(old), closed], /^compare needs questions/],
    [[addressOf(old), "localhost", ...queries], /^localhost: not an IP address, such as/],
    [[addressOf(old), closed, "-queries", "missing"], /^-queries missing: no such file/],
  ] as const) {
    const { code, output, errors } = await runPortolan(["compare", ...words]);
    assert.deepEqual([code, output], [2, ""]);
    assert.match(errors, message);
  }
});
