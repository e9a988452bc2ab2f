/** Dynamic updates (RFC 2136) with BIND's nsupdate, and what is left of them after a crash. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { formatRecord } from "../../src/dns/resource-record.ts";
import { ask } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { Portolan } from "../support/portolan.ts";
import { Program, run } from "../support/program.ts";

const SECRET = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const KEY = `hmac-sha256:update.example:${SECRET}`;

const ZONE = `$TTL 60
@ SOA ns1 host 7 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.2
alias CNAME www
`;

function corefile(port: number, extra = "", notify?: number): string {
  return `example.org:${port} {
    bind 127.0.0.1
    errors
    tsig {
        secret update.example ${SECRET}
        secret other.example ${SECRET}
    }
    ${notify === undefined ? "" : `transfer {\n        to 127.0.0.1:${notify}\n    }`}
    cache 30
    file db {
        update update.example
        ${extra}
    }
    reload 2s
}
example.net:${port} {
    bind 127.0.0.1
    whoami
}
`;
}

async function nsupdate(
  port: number,
  lines: readonly string[],
  key = KEY,
  zone = "example.org",
  seconds = 20,
): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-nsupdate-"));
  try {
    const script = join(folder, "script");
    writeFileSync(script, `server 127.0.0.1 ${port}\nzone ${zone}\n${lines.join("\n")}\nsend\n`);
    const words = key === "" ? [script] : ["-y", key, script];
    const { output, errors, code } = await run("nsupdate", ["-t", String(seconds), ...words]);
    return code === 0 ? "done" : `${output}${errors}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function start(extra = "", notify?: number, files: Record<string, string> = { db: ZONE }): Promise<Portolan> {
  return Portolan.start((port) => corefile(port("dns"), extra, notify), { files });
}

async function addresses(port: number, name: string): Promise<string[]> {
  const reply = await ask({ address: "127.0.0.1", port }, name);
  return reply.answer.map(({ data }) => JSON.stringify(data));
}

async function serialOf(port: number): Promise<number> {
  const { answer } = await ask({ address: "127.0.0.1", port }, "example.org", "SOA");
  const [record] = answer;
  assert.ok(
    record !== undefined &&
      typeof record.data === "object" &&
      record.data !== null &&
      "serial" in record.data,
  );
  return Number(record.data.serial);
}

suite("dynamic updates with nsupdate", { skip: skipWithout("nsupdate"), concurrency: 2 }, () => {
  test("records come and go, and what is cached is forgotten", async () => {
    await using server = await start();
    const { port } = server;
    assert.deepEqual(await addresses(port, "new.example.org"), []);
    assert.equal(
      await nsupdate(port, ["add new.example.org 60 A 192.0.2.10", "add new.example.org 60 A 192.0.2.11"]),
      "done",
    );
    assert.equal((await addresses(port, "new.example.org")).length, 2);
    assert.equal(await serialOf(port), 8);
    assert.equal(await nsupdate(port, ["delete new.example.org A 192.0.2.10"]), "done");
    assert.equal((await addresses(port, "new.example.org")).length, 1);
    assert.equal(await nsupdate(port, ["delete new.example.org"]), "done");
    assert.equal((await ask({ address: "127.0.0.1", port }, "new.example.org")).rcode, 3);
    // An update without a change keeps the serial.
    assert.equal(await nsupdate(port, ["delete new.example.org"]), "done");
    assert.equal(await serialOf(port), 10);
    // The apex keeps its SOA and NS records, whoever deletes them.
    assert.equal(
      await nsupdate(port, ["delete example.org", "delete example.org NS ns1.example.org."]),
      "done",
    );
    assert.equal((await ask({ address: "127.0.0.1", port }, "example.org", "NS")).answer.length, 1);
    // An alias stays alone, and other data stay without one.
    assert.equal(
      await nsupdate(port, [
        "add alias.example.org 60 A 192.0.2.9",
        "add www.example.org 60 CNAME ns1.example.org.",
      ]),
      "done",
    );
    assert.equal((await ask({ address: "127.0.0.1", port }, "alias.example.org", "CNAME")).answer.length, 1);
    assert.equal((await ask({ address: "127.0.0.1", port }, "www.example.org", "CNAME")).answer.length, 0);
  });

  test("a second DNAME takes the place of the first, and what only a signer makes is refused", async () => {
    await using server = await start();
    const { port } = server;
    assert.equal(
      await nsupdate(port, ["add d.example.org 60 DNAME one.", "add d.example.org 60 DNAME two."]),
      "done",
    );
    const { answer } = await ask({ address: "127.0.0.1", port }, "d.example.org", "DNAME");
    assert.deepEqual(answer.map(formatRecord), ["d.example.org.\t30\tIN\tDNAME\ttwo."]);
    for (const record of [
      "n.example.org 60 NSEC a.example.org. A",
      "n.example.org 60 RRSIG A 13 3 300 20300101000000 20200101000000 12345 example.org. AAAA",
      "example.org 60 NSEC3PARAM 1 0 0 -",
    ]) {
      const said = await nsupdate(port, ["add a.example.org 60 A 192.0.2.1", `add ${record}`]);
      assert.match(said, /REFUSED/, `${record}: ${said}`);
    }
    // The zone is as it was, and takes updates as before.
    assert.deepEqual(await addresses(port, "a.example.org"), []);
    assert.equal(await nsupdate(port, ["add a.example.org 60 A 192.0.2.1"]), "done");
    assert.equal((await addresses(port, "a.example.org")).length, 1);
  });

  test("updates are acknowledged where the journal cannot be written anew", async () => {
    await using server = await start();
    // In the way of the file that takes the place of the journal once it has a megabyte.
    mkdirSync(join(server.folder, "db.journal.new"));
    const text = "x".repeat(250);
    for (let message = 0; message < 20; message++) {
      const lines = Array.from(
        { length: 220 },
        (_, index) => `add m${message}-${index}.example.org 60 TXT ${text}`,
      );
      assert.equal(await nsupdate(server.port, lines), "done");
    }
    await server.waitForLog(
      /Journal "[^"]*db\.journal" of zone "example\.org\." cannot be compacted: EISDIR/,
    );
    assert.equal(await serialOf(server.port), 7 + 20);
  });

  test("prerequisites of all five kinds", async () => {
    await using server = await start();
    const add = "add p.example.org 60 A 192.0.2.20";
    for (const [prerequisite, expected] of [
      ["prereq nxdomain www.example.org", /YXDOMAIN/],
      ["prereq yxdomain nope.example.org", /NXDOMAIN/],
      ["prereq nxrrset www.example.org A", /YXRRSET/],
      ["prereq yxrrset www.example.org MX", /NXRRSET/],
      ["prereq yxrrset www.example.org A 192.0.2.3", /NXRRSET/],
      ["prereq yxrrset www.example.com A", /NOTZONE/],
      ["prereq yxrrset www.example.org A 192.0.2.2", /^done$/],
      ["prereq nxdomain p2.example.org", /^done$/],
    ] as const) {
      assert.match(await nsupdate(server.port, [prerequisite, add]), expected, prerequisite);
    }
  });

  test("who may not, may not, and elsewhere the opcode is not implemented", async () => {
    await using server = await start();
    const add = "add x.example.org 60 A 192.0.2.30";
    assert.match(await nsupdate(server.port, [add], ""), /REFUSED/);
    assert.match(await nsupdate(server.port, [add], `hmac-sha256:other.example:${SECRET}`), /REFUSED/);
    assert.match(
      await nsupdate(server.port, [add], `hmac-sha256:unknown.example:${SECRET}`),
      /BADKEY|NOTAUTH/,
    );
    assert.match(
      await nsupdate(server.port, ["add x.sub.example.org 60 A 192.0.2.30"], KEY, "sub.example.org"),
      /NOTAUTH/,
    );
    assert.match(
      await nsupdate(server.port, ["add x.example.net 60 A 192.0.2.30"], "", "example.net"),
      /NOTIMP/,
    );
    assert.deepEqual(await addresses(server.port, "x.example.org"), []);
  });

  test("secondaries are notified", async () => {
    const secondary = createSocket("udp4");
    secondary.bind(0, "127.0.0.1");
    await once(secondary, "listening");
    try {
      await using server = await start("", secondary.address().port);
      // One comes at the start.
      await once(secondary, "message");
      const notified = once(secondary, "message");
      assert.equal(await nsupdate(server.port, ["add n.example.org 60 A 192.0.2.40"]), "done");
      const [octets] = await notified;
      assert.ok(octets instanceof Uint8Array);
      assert.equal(((octets[2] ?? 0) >> 3) & 0xf, 4);
    } finally {
      secondary.close();
    }
  });

  test("a reload of the configuration loses nothing and takes updates as before", async () => {
    await using server = await start();
    const { port } = server;
    assert.equal(await nsupdate(port, ["add one.example.org 60 A 192.0.2.1"]), "done");
    const updates = Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        nsupdate(port, [`add during-${index}.example.org 60 A 192.0.2.1`]),
      ),
    );
    await server.reload(() => corefile(port, "reload 30s"));
    const said = await updates;
    assert.equal(await nsupdate(port, ["add two.example.org 60 A 192.0.2.1"]), "done");
    const names = [
      "one",
      "two",
      ...said.flatMap((word, index) => (word === "done" ? [`during-${index}`] : [])),
    ];
    for (const name of names) assert.equal((await addresses(port, `${name}.example.org`)).length, 1, name);
  });
});

suite("dynamic updates on several threads", { skip: skipWithout("nsupdate") }, () => {
  /** Asks from so many ports that every thread answers some of them. */
  async function everywhere(question: () => Promise<string>): Promise<Set<string>> {
    const said = new Set<string>();
    for (let round = 0; round < 24; round++) said.add(await question());
    return said;
  }

  test("the leader takes what any thread is told, and all have the same zone", async () => {
    const text = (port: number) =>
      corefile(port).replace(
        "bind 127.0.0.1",
        "bind 127.0.0.1\n    multisocket 3\n    transfer {\n        to *\n    }",
      );
    await using server = await Portolan.start((port) => text(port("dns")), { files: { db: ZONE } });
    const { port } = server;
    for (let round = 0; round < 12; round++)
      assert.equal(await nsupdate(port, [`add n${round}.example.org 60 A 192.0.2.${round}`]), "done");
    assert.equal(await nsupdate(port, ["delete n3.example.org"]), "done");
    const check = async () => {
      assert.deepEqual(await everywhere(async () => String(await serialOf(port))), new Set(["20"]));
      const found = async (name: string) => (await addresses(port, `${name}.example.org`)).join();
      assert.deepEqual(
        await everywhere(() => found("n5")),
        new Set([JSON.stringify({ address: "192.0.2.5" })]),
      );
      assert.deepEqual(await everywhere(() => found("n3")), new Set([""]));
    };
    await check();
    // Each thread knows the way from an older serial.
    const ixfr = async () => {
      const { output } = await run("dig", [
        "@127.0.0.1",
        "-p",
        String(port),
        "+noall",
        "+answer",
        "ixfr=15",
        "example.org",
      ]);
      return output.replaceAll(/\s+/g, " ");
    };
    const ways = await everywhere(ixfr);
    assert.equal(ways.size, 1);
    assert.match([...ways].join(), /SOA .* 20 .* SOA .* 15 .* SOA .* 16 .*n8.* SOA .* 20 /);
    // A reload, with updates under way, keeps them together.
    const updates = Promise.all(
      Array.from({ length: 6 }, (_, index) => nsupdate(port, [`add r${index}.example.org 60 A 192.0.2.1`])),
    );
    await server.reload(() => text(port).replace("reload 2s", "reload 30s"));
    const done = (await updates).filter((word) => word === "done").length;
    assert.equal(await nsupdate(port, ["add last.example.org 60 A 192.0.2.99"]), "done");
    const serials = await everywhere(async () => String(await serialOf(port)));
    assert.equal(serials.size, 1, [...serials].join());
    assert.ok(Number([...serials][0]) >= 21, `${done} updates`);
    assert.equal((await everywhere(async () => (await addresses(port, "last.example.org")).join())).size, 1);
    // What was refused by one thread is refused by all.
    assert.deepEqual(
      await everywhere(() =>
        nsupdate(port, ["prereq nxdomain n1.example.org", "add n1.example.org 60 A 192.0.2.1"]).then(
          (word) => /YXDOMAIN/.exec(word)?.[0] ?? word,
        ),
      ),
      new Set(["YXDOMAIN"]),
    );
  });
});

suite("what was acknowledged stays while configurations come and go", {
  skip: skipWithout("nsupdate"),
  concurrency: 2,
}, () => {
  /** How many ask for the serial all the time. */
  const ASKING = 4;
  const RELOADS = 40;

  for (const [threads, name] of [
    [1, "on one thread"],
    [3, "on several threads"],
  ] as const)
    test(name, async () => {
      const text = (port: number, extra: string) =>
        corefile(port, extra).replace("bind 127.0.0.1", `bind 127.0.0.1\n    multisocket ${threads}`);
      await using server = await Portolan.start((port) => text(port("dns"), ""), { files: { db: ZONE } });
      const { port } = server;
      let acknowledged = await serialOf(port);
      let isDone = false;
      const update = async () => {
        while (!isDone) {
          const said = await nsupdate(port, [`add n${acknowledged}.example.org 60 A 192.0.2.1`]);
          if (said === "done") acknowledged++;
        }
      };
      let asked = 0;
      const look = async () => {
        while (!isDone) {
          const least = acknowledged;
          const serial = await serialOf(port);
          asked++;
          assert.ok(serial >= least, `serial ${serial} behind ${least}, which was acknowledged`);
        }
      };
      const reload = async () => {
        try {
          for (let round = 1; round <= RELOADS; round++)
            await server.reload(() => text(port, `reload ${30 + round}s`));
        } finally {
          isDone = true;
        }
      };
      await Promise.all([reload(), update(), ...Array.from({ length: ASKING }, look)]);
      assert.ok(asked > 100, `${asked} questions`);
      assert.ok(acknowledged > 10, `${acknowledged} updates`);
    });
});

suite("a crash loses nothing that was acknowledged", { skip: skipWithout("nsupdate") }, () => {
  test("kill -9 again and again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-crash-"));
    try {
      const port = await freePort();
      writeFileSync(join(folder, "db"), ZONE);
      const acknowledged = new Set<string>();
      let serial = 0;
      for (let round = 0; round < 3; round++) {
        // Now on one thread, now on several.
        const threads = round === 1 ? "bind 127.0.0.1\n    multisocket 2" : "bind 127.0.0.1";
        writeFileSync(join(folder, "Corefile"), corefile(port).replace("bind 127.0.0.1", threads));
        await using program = new Program(
          join(import.meta.dirname, "..", "..", "bin", "portolan"),
          ["-conf", "Corefile"],
          {
            cwd: folder,
          },
        );
        await program.waitForOutput(/example\.org\.:\d+/);
        for (const name of acknowledged)
          assert.equal((await addresses(port, `${name}.example.org`)).length, 1, name);
        const now = await serialOf(port);
        assert.ok(now >= serial, `${now} after ${serial}`);
        serial = now;
        const updates = Array.from({ length: 8 }, async (_, index) => {
          const name = `r${round}-${index}`;
          const line = `add ${name}.example.org 60 A 192.0.2.1`;
          // Few seconds: those that the crash cuts off wait for as long as they may.
          if ((await nsupdate(port, [line], KEY, "example.org", 2)) === "done") acknowledged.add(name);
        });
        // In the middle of them.
        await Promise.any(updates.slice(0, 4));
        program.kill("SIGKILL");
        await Promise.all(updates);
      }
      assert.ok(acknowledged.size >= 3, String(acknowledged.size));
      // A crash that leaves half of a frame: what stands in front of it holds.
      const journal = join(folder, "db.journal");
      assert.ok(existsSync(journal));
      writeFileSync(journal, Buffer.concat([readFileSync(journal), Buffer.from("0000ffff00", "hex")]));
      const whole = statSync(journal).size - 5;
      await using program = new Program(
        join(import.meta.dirname, "..", "..", "bin", "portolan"),
        ["-conf", "Corefile"],
        {
          cwd: folder,
        },
      );
      await program.waitForOutput(/example\.org\.:\d+/);
      for (const name of acknowledged)
        assert.equal((await addresses(port, `${name}.example.org`)).length, 1, name);
      assert.equal(statSync(journal).size, whole);
      truncateSync(journal, whole);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("damage in the middle of the journal costs what stood there, and is told", async () => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-damage-"));
    try {
      const [port, metrics] = [await freePort(), await freePort()];
      const text = corefile(port).replace("errors", `errors\n    prometheus 127.0.0.1:${metrics}`);
      writeFileSync(join(folder, "db"), ZONE);
      writeFileSync(join(folder, "Corefile"), text);
      const start = () =>
        new Program(join(import.meta.dirname, "..", "..", "bin", "portolan"), ["-conf", "Corefile"], {
          cwd: folder,
        });
      const journal = join(folder, "db.journal");
      const ends: number[] = [];
      let serial = 0;
      {
        await using program = start();
        await program.waitForOutput(/example\.org\.:\d+/);
        for (const name of ["one", "two", "three"]) {
          assert.equal(await nsupdate(port, [`add ${name}.example.org 60 A 192.0.2.1`]), "done");
          ends.push(statSync(journal).size);
        }
        serial = await serialOf(port);
        program.kill("SIGKILL");
      }
      const octets = readFileSync(journal);
      octets.fill(0xff, (ends[0] ?? 0) + 30, (ends[0] ?? 0) + 40);
      writeFileSync(journal, octets);
      for (const round of [1, 2]) {
        await using program = start();
        await program.waitForOutput(/example\.org\.:\d+/);
        for (const [name, count] of [
          ["one", 1],
          ["two", 0],
          ["three", 1],
        ] as const)
          assert.equal((await addresses(port, `${name}.example.org`)).length, count, name);
        // Secondaries may have the serial that the lost update had: what is served now is another zone.
        const now = await serialOf(port);
        assert.ok(now > serial, `${now} after ${serial}`);
        if (round === 1) {
          const stretch = `${(ends[1] ?? 0) - (ends[0] ?? 0)} bytes at ${ends[0]}`;
          const told = `[ERROR] plugin/file: Journal "db.journal" of zone "example.org." is damaged: ${stretch}.`;
          assert.ok(program.output.includes(told), program.output);
          assert.deepEqual(readFileSync(`${journal}.damaged`), octets);
          const page = await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
          assert.match(page, /portolan_zone_journal_damages_total\{zone="example\.org\."\} 1/);
        } else assert.doesNotMatch(program.output, /is damaged/);
        assert.equal(await nsupdate(port, [`add again-${round}.example.org 60 A 192.0.2.1`]), "done");
        serial = now;
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
