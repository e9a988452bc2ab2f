/** What `dynupdate` does beside taking updates: transfers of changes, signatures, several zones, threads, reloads. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { decodeMessage } from "../../src/dns/message.ts";
import { rcodeName } from "../../src/dns/numbers.ts";
import { dig } from "../support/dig.ts";
import { ask, type Server } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { newKeyFiles } from "../support/key-files.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";
import { exchange, octetsOf, recordsOf, SECRET, SEED } from "../support/update-messages.ts";
import { ZONE_PEERS } from "../support/zone-peers.ts";

const ZONE = "example.org.";

function blockOf(port: number, lines: string, keys = ZONE): string {
  return `${keys}:${port} {
    bind 127.0.0.1
    errors
    tsig {
        secret all.example. ${SECRET}
        secret few.example. ${SECRET}
    }
${lines}
}
`;
}

const DYNUPDATE = `    transfer {
        to *
    }
    dynupdate {
        file db
        allow all.example. * *
        allow few.example. few.${ZONE} TXT
    }`;

async function update(
  server: Server,
  records: string | readonly string[],
  key = "all",
  zone = ZONE,
): Promise<string> {
  const octets = octetsOf({ title: "", key, updates: [records].flat() }, zone);
  const reply = await exchange(server, octets);
  return reply === undefined ? "nothing" : rcodeName(decodeMessage(reply).rcode);
}

async function countOf(server: Server, name: string, type = "A"): Promise<number> {
  return (await ask(server, name, type)).answer.length;
}

/** What a client prints of a transfer. */
async function changesSince(serial: number, client: string, { address, port }: Server): Promise<string[]> {
  const { output } = await run(client, [`@${address}`, "-p", String(port), "+tcp", `ixfr=${serial}`, ZONE]);
  const lines = output.split("\n").filter((line) => line !== "" && !line.startsWith(";"));
  return lines.map((line) => line.replaceAll(/\s+/g, " "));
}

suite("what changed goes out as IXFR", { skip: skipWithout("kdig", "dig", "named") }, () => {
  test("in steps, to kdig and dig", async () => {
    await using server = await Portolan.start((port) => blockOf(port("dns"), DYNUPDATE), {
      files: { db: SEED },
    });
    assert.equal(await update(server, "one 60 IN A 192.0.2.9"), "NOERROR");
    assert.equal(await update(server, ["one 0 ANY ANY", "two 60 IN A 192.0.2.9"]), "NOERROR");
    const soa = (serial: number): string =>
      `${ZONE} 60 IN SOA ns1.${ZONE} host.${ZONE} ${serial} 3600 600 86400 60`;
    const steps = [
      [soa(9), soa(7), soa(8), `one.${ZONE} 60 IN A 192.0.2.9`],
      [soa(8), `one.${ZONE} 60 IN A 192.0.2.9`, soa(9), `two.${ZONE} 60 IN A 192.0.2.9`, soa(9)],
    ];
    for (const client of ["kdig", "dig"]) {
      assert.deepEqual(await changesSince(7, client, server), steps.flat());
      assert.deepEqual(await changesSince(9, client, server), [soa(9)]);
    }
  });

  test("to a secondary of BIND, which hears of each change", async () => {
    const secondary = await freePort();
    const text = DYNUPDATE.replace("to *", `to *\n        to 127.0.0.1:${secondary}`);
    await using server = await Portolan.start((port) => blockOf(port("dns"), text), { files: { db: SEED } });
    await using bind = await ZONE_PEERS.bind.start("example.org", { primary: server.port, port: secondary });
    await untilTrue(async () => (await countOf(bind, `www.${ZONE}`)) === 2);
    for (const name of ["one", "two", "three"])
      assert.equal(await update(server, `${name} 60 IN A 192.0.2.9`), "NOERROR");
    assert.equal(await update(server, "two 0 ANY ANY"), "NOERROR");
    await untilTrue(async () => {
      const [here, there] = await Promise.all([recordsOf(server, ZONE), recordsOf(bind, ZONE)]);
      return here.join() === there.join();
    });
  });
});

test("dnssec signs what an update brings, and denies what it takes away", {
  skip: skipWithout("dig"),
}, async () => {
  const { key, private: secret } = newKeyFiles(ZONE);
  const lines = `    dnssec {\n        key file K\n    }\n    cache 30\n${DYNUPDATE}`;
  await using server = await Portolan.start((port) => blockOf(port("dns"), lines), {
    files: { db: SEED, "K.key": key, "K.private": secret },
  });
  const signatures = async (): Promise<string[]> =>
    (await dig(server, "+dnssec", `new.${ZONE}`, "A")).answer.filter((line) => line.includes(" RRSIG A 13 "));
  assert.deepEqual(await signatures(), []);
  assert.equal(await update(server, "new 60 IN A 192.0.2.9"), "NOERROR");
  const [first] = await signatures();
  assert.ok(first !== undefined);
  assert.equal(await update(server, "new 60 IN A 192.0.2.10"), "NOERROR");
  const [second] = await signatures();
  assert.ok(second !== undefined && second !== first);
  assert.equal(await update(server, "new 0 ANY ANY"), "NOERROR");
  const denied = await dig(server, "+dnssec", `new.${ZONE}`, "A");
  assert.deepEqual(denied.answer, []);
  assert.ok(
    denied.authority.some((line) => line.includes(" NSEC ")),
    denied.text,
  );
});

test("several zones of a block, and of several blocks, do not know each other's updates", async () => {
  const line = (zone: string, key: string, database: string): string => `    dynupdate ${zone} {
        file db
        database ${database}
        allow ${key}.example. * *
    }
`;
  const lines = line("a.test", "all", "a") + line("b.test", "few", "b");
  await using server = await Portolan.start(
    (port) =>
      blockOf(port("dns"), lines, `a.test:${port("dns")} b.test`) +
      blockOf(port("dns"), line("c.test", "all", "c"), "c.test"),
    { files: { db: SEED } },
  );
  const row = async (key: string, zone: string): Promise<string> =>
    await update(server, "new 60 IN A 192.0.2.9", key, zone);
  assert.deepEqual(
    [await row("few", "a.test."), await row("all", "b.test."), await row("few", "c.test.")],
    ["REFUSED", "REFUSED", "REFUSED"],
  );
  assert.deepEqual(
    [await row("all", "a.test."), await row("few", "b.test."), await row("all", "x.b.test.")],
    ["NOERROR", "NOERROR", "NOTAUTH"],
  );
  // Each has its own names and serial.
  assert.deepEqual(
    await Promise.all(["a", "b", "c"].map((zone) => countOf(server, `new.${zone}.test.`))),
    [1, 1, 0],
  );
  assert.equal(await row("all", "c.test."), "NOERROR");
  assert.equal(await update(server, "new.b.test. 60 IN A 192.0.2.9", "all", "a.test."), "NOTZONE");
});

test("all threads have what any of them was told, and the limits hold on all of them", async () => {
  const lines = `    multisocket 3\n${DYNUPDATE.replace("file db", "file db\n        database database\n        max_records 20\n        max_update_records 2")}`;
  await using server = await Portolan.start((port) => blockOf(port("dns"), lines), { files: { db: SEED } });
  // Each datagram comes from another port, and so to any thread.
  for (let index = 0; index < 7; index++)
    assert.equal(await update(server, `n${index} 60 IN A 192.0.2.9`), "NOERROR");
  for (let round = 0; round < 12; round++) {
    assert.equal(await countOf(server, `n${round % 7}.${ZONE}`), 1);
    assert.equal(await update(server, "more 60 IN A 192.0.2.9"), "REFUSED");
    assert.equal(await update(server, ["a 0 ANY A", "b 0 ANY A", "c 0 ANY A"]), "REFUSED");
    assert.equal(await update(server, "www 60 IN TXT x", "few"), "REFUSED");
    assert.equal(await update(server, "new 0 ANY DS"), "NOTIMP");
  }
});

test("updates without a database outlive a reload, and not the server", async () => {
  const files = { db: SEED };
  const text = (port: number, extra: string): string => blockOf(port, `    cache ${extra}\n${DYNUPDATE}`);
  {
    await using server = await Portolan.start((port) => text(port("dns"), "30"), { files });
    // What is cached is forgotten.
    assert.equal(await countOf(server, `new.${ZONE}`), 0);
    assert.equal(await update(server, "new 60 IN A 192.0.2.9"), "NOERROR");
    assert.equal(await countOf(server, `new.${ZONE}`), 1);
    await server.reload((port) => text(port("dns"), "31"));
    assert.equal(await countOf(server, `new.${ZONE}`), 1);
    assert.equal(await update(server, "new2 60 IN A 192.0.2.9"), "NOERROR");
    assert.equal(await countOf(server, `new2.${ZONE}`), 1);
  }
  await using server = await Portolan.start((port) => text(port("dns"), "30"), { files });
  assert.equal(await countOf(server, `new.${ZONE}`), 0);
});

test("file has the rules of 'allow', beside the keys of 'update'", async () => {
  const lines = `    file db {
        update all.example.
        allow few.example. few.${ZONE} TXT ANY
        allow few.example. @ MX
    }`;
  await using server = await Portolan.start((port) => blockOf(port("dns"), lines), { files: { db: SEED } });
  for (const [record, rcode, key = "few"] of [
    ["few 60 IN TXT two", "NOERROR"],
    ["few 60 IN A 192.0.2.9", "REFUSED"],
    ["few 0 ANY TXT", "NOERROR"],
    ["few 0 ANY A", "REFUSED"],
    ["few 0 ANY ANY", "NOERROR"],
    ["www 60 IN TXT two", "REFUSED"],
    ["@ 60 IN MX 10 www.@", "NOERROR"],
    ["@ 60 IN TXT two", "REFUSED"],
    ["www 60 IN MX 10 www.@", "REFUSED"],
    ["www.other. 60 IN TXT two", "REFUSED"],
    ["few 60 CH TXT two", "FORMERR"],
    ["www 60 IN TXT two", "NOERROR", "all"],
    ["@ 0 ANY MX", "NOERROR", "all"],
    ["www.other. 60 IN TXT two", "NOTZONE", "all"],
    [
      "sub 60 IN DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
      "NOERROR",
      "all",
    ],
  ] as const)
    assert.equal(await update(server, record, key), rcode, `${record} (${key})`);
});

test("an update of file goes to the line that serves the zone", async () => {
  const lines = `    file old {
        update few.example.
    }
    file db {
        update all.example.
    }`;
  await using server = await Portolan.start((port) => blockOf(port("dns"), lines), {
    files: { db: SEED, old: SEED },
  });
  assert.equal(await update(server, "new 60 IN A 192.0.2.9", "few"), "REFUSED");
  assert.equal(await update(server, "new 60 IN A 192.0.2.9", "all"), "NOERROR");
  assert.equal(await countOf(server, `new.${ZONE}`), 1);
});

test("dynupdate comes before hosts in the chain", async () => {
  const lines = `    hosts {\n        192.0.2.99 www.${ZONE}\n    }\n${DYNUPDATE}`;
  await using server = await Portolan.start((port) => blockOf(port("dns"), lines), { files: { db: SEED } });
  assert.equal(await countOf(server, `www.${ZONE}`), 2);
});

test("external-dns lists the zone, and writes names with their owners beside them", async () => {
  await using server = await Portolan.start(
    (port) =>
      blockOf(
        port("dns"),
        `    transfer {
        to *
    }
    dynupdate {
        file db
        database database
        allow all.example. * A AAAA CNAME TXT
    }`,
      ).replace("secret few", "require AXFR\n        secret few"),
    { files: { db: SEED } },
  );
  const owner = (resource: string): string =>
    `"heritage=external-dns,external-dns/owner=default,external-dns/resource=${resource}"`;
  const names = async (): Promise<string[]> =>
    (await recordsOf(server, ZONE, "all")).filter((line) => /^(a-)?shop /.test(line));
  // The list of records is a signed transfer; who does not sign gets none.
  await assert.rejects(recordsOf(server, ZONE));
  assert.deepEqual(await names(), []);
  // A name, and the record of the registry that says whose it is: both in one message.
  const first = [`shop 0 IN A 192.0.2.20`, `a-shop 0 IN TXT ${owner("service/web/shop")}`];
  assert.equal(await update(server, first), "NOERROR");
  assert.deepEqual(await names(), [`a-shop 0 IN TXT ${owner("service/web/shop")}`, "shop 0 IN A 192.0.2.20"]);
  // It changes: the old ones go one by one, and the new ones come, in one message.
  const changed = [
    "shop 0 NONE A 192.0.2.20",
    "shop 300 IN A 192.0.2.21",
    "shop 300 IN A 192.0.2.22",
    `a-shop 0 NONE TXT ${owner("service/web/shop")}`,
    `a-shop 300 IN TXT ${owner("ingress/web/shop")}`,
  ];
  assert.equal(await update(server, changed), "NOERROR");
  const served = [
    `a-shop 300 IN TXT ${owner("ingress/web/shop")}`,
    "shop 300 IN A 192.0.2.21",
    "shop 300 IN A 192.0.2.22",
  ];
  assert.deepEqual(await names(), served);
  // The same once more, as after a lost reply.
  assert.equal(await update(server, changed), "NOERROR");
  assert.deepEqual(await names(), served);
  // It goes. What others have written at other names stays.
  const gone = [
    "shop 0 NONE A 192.0.2.21",
    "shop 0 NONE A 192.0.2.22",
    `a-shop 0 NONE TXT ${owner("ingress/web/shop")}`,
  ];
  assert.equal(await update(server, gone), "NOERROR");
  assert.deepEqual(await names(), []);
  // A type that it was not given.
  assert.equal(await update(server, "shop 0 IN MX 10 www.@"), "REFUSED");
});
