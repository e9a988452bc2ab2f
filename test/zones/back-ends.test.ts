/** A zone of a cloud through the program: large, copied by others' clients, and followed as it changes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { dig } from "../support/dig.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";
import { type RecordSet, Route53Server } from "../support/route53-server.ts";
import { untilTrue } from "../support/until-true.ts";

const SIZE = 10_000;

function zoneOf(address: string): RecordSet[] {
  const hosts = Array.from({ length: SIZE }, (_, index) => ({
    name: `h${index}.example.org.`,
    type: "A",
    values: [`10.0.${index >> 8}.${index & 255}`],
  }));
  return [
    {
      name: "example.org.",
      type: "SOA",
      values: ["ns.example.org. h.example.org. 1 7200 900 1209600 86400"],
    },
    { name: "example.org.", type: "NS", values: ["ns.example.org."] },
    { name: "ns.example.org.", type: "A", values: [address] },
    { name: "\\052.wild.example.org.", type: "TXT", values: ['"a;b" "c"'] },
    { name: "balancer.example.org.", type: "A", alias: "lb.amazonaws.com." },
    ...hosts,
  ];
}

test(`a hosted zone of ${SIZE} records is copied whole by dig and kdig, with a serial for each state`, {
  skip: skipWithout("dig", "kdig"),
}, async () => {
  await using cloud = await Route53Server.start();
  cloud.pageSize = 300;
  cloud.zones.set("Z1", zoneOf("192.0.2.1"));
  cloud.faults.push("throttled");
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      route53 example.org.:Z1 {
        aws_endpoint ${cloud.url}
        refresh 1s
      }
      transfer {
        to *
      }
    }\n`,
    { env: { AWS_ACCESS_KEY_ID: "AKIDSTATIC", AWS_SECRET_ACCESS_KEY: "secret", AWS_SESSION_TOKEN: "" } },
  );
  const copy = async (command: string): Promise<string[]> => {
    const options = ["-p", String(server.port), "@127.0.0.1", "example.org", "AXFR"];
    const { code, output, errors } = await run(command, options);
    assert.equal(code, 0, output + errors);
    const records = output.split("\n").filter((line) => /^\S+\s+\d+\s+IN\s/.test(line));
    return records.map((line) => line.replace(/\s+/g, " "));
  };
  const copies = [await copy("dig"), await copy("kdig")] as const;
  for (const records of copies) {
    assert.equal(records.length, SIZE + 5);
    assert.equal(records[0], records.at(-1));
    assert.match(records[0] ?? "", /^example\.org\. 300 IN SOA ns\.example\.org\. h\.example\.org\. \d{10} /);
    assert.ok(records.includes("h9999.example.org. 300 IN A 10.0.39.15"));
    assert.ok(records.includes('*.wild.example.org. 300 IN TXT "a;b" "c"'));
  }
  assert.deepEqual(copies[0].toSorted(), copies[1].toSorted());

  const serialOf = async () => Number((await dig(server, "example.org", "SOA")).answer[0]?.split(" ")[6]);
  const before = await serialOf();
  cloud.zones.set("Z1", zoneOf("192.0.2.2"));
  const changed = "ns.example.org. 300 IN A 192.0.2.2";
  await untilTrue(async () => (await dig(server, "ns.example.org", "A")).answer[0] === changed, {
    log: () => server.log,
  });
  assert.ok((await serialOf()) > before);
  assert.ok((await copy("dig")).includes("ns.example.org. 300 IN A 192.0.2.2"));
});
