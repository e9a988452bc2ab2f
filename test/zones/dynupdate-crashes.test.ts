/** What crashes and damage leave of a zone of `dynupdate`. */
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { decodeMessage } from "../../src/dns/message.ts";
import { exchangeUdp, type Server } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { Portolan, portolan } from "../support/portolan.ts";
import { octetsOf, recordsOf, SECRET, SEED } from "../support/update-messages.ts";

const ZONE = "example.org.";
/** Of kill -9. */
const ROUNDS = Number(process.env.PORTOLAN_DYNUPDATE_ROUNDS ?? 20);

function corefile(port: number, database: string): string {
  return `${ZONE}:${port} {
    bind 127.0.0.1
    tsig {
        secret all.example. ${SECRET}
    }
    transfer {
        to *
    }
    dynupdate {
        file db
        database ${database}
        allow all.example. * *
    }
}
`;
}

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "portolan-dynupdate-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function start(database: string, seed = SEED): Promise<Portolan> {
  return Portolan.start((port) => corefile(port("dns"), database), { files: { db: seed } });
}

/** Adds a name. @returns whether that is acknowledged */
async function add(server: Server, name: string): Promise<boolean> {
  const octets = octetsOf({ title: "", updates: [`${name} 60 IN A 192.0.2.1`] }, ZONE);
  // In place of the reply, there may be a crash.
  const reply = await exchangeUdp(server, octets, 200);
  return reply !== undefined && decodeMessage(reply).rcode === 0;
}

/** Names that updates added. */
async function addedNames(server: Server): Promise<string[]> {
  const records = await recordsOf(server, ZONE);
  return records.flatMap((record) => /^(n[\d-]+) /.exec(record)?.[1] ?? []);
}

async function lost(acknowledged: ReadonlySet<string>, server: Server): Promise<string[]> {
  const names = new Set(await addedNames(server));
  return [...acknowledged].filter((name) => !names.has(name));
}

async function serialOf(server: Server): Promise<number> {
  const [record] = (await recordsOf(server, ZONE)).filter((line) => line.startsWith("@ 60 IN SOA "));
  return Number(record?.split(" ")[6]);
}

test("nothing acknowledged is lost when the server is killed again and again", {
  timeout: 900_000,
}, async (t) => {
  const database = join(folderOf(t), "database");
  const acknowledged = new Set<string>();
  let former = 6;
  for (let round = 0; round < ROUNDS; round++) {
    await using server = await start(database);
    assert.deepEqual(await lost(acknowledged, server), [], `round ${round}`);
    const serial = await serialOf(server);
    assert.ok(serial > former, `serial ${serial} after ${former}`);
    former = serial;
    let isKilled = false;
    let count = 0;
    const update = async (): Promise<void> => {
      while (!isKilled) {
        const name = `n${round}-${count++}`;
        if (await add(server, name)) acknowledged.add(name);
        // Between two updates of one client, and in the middle of those of the other.
        if (acknowledged.size >= 3 * (round + 1) && !isKilled) {
          isKilled = true;
          server.program.kill("SIGKILL");
        }
      }
    };
    await Promise.all([update(), update()]);
    await server.program.ended;
  }
  assert.ok(acknowledged.size >= 3 * ROUNDS);
  assert.equal(statSync(database).mode & 0o777, 0o600);
  await using server = await start(database, SEED.replace("host 7", "host 900000"));
  assert.deepEqual(await lost(acknowledged, server), []);
});

suite("a damaged database is kept aside, and the zone is the seed with what can be read", () => {
  /** A database with three updates, and what it holds. */
  async function written(folder: string): Promise<{ readonly path: string; readonly octets: Buffer }> {
    const path = join(folder, "database");
    await using server = await start(path);
    for (const name of ["n1", "n2", "n3"]) assert.ok(await add(server, name));
    await server.stop();
    return { path, octets: readFileSync(path) };
  }

  for (const [title, damage, names] of [
    [
      "the last octets changed",
      (octets) => octets.fill(1, octets.length - 40, octets.length - 30),
      ["n1", "n2"],
    ],
    ["octets changed in the middle", (octets) => octets.fill(1, 200, 210), ["n1", "n2", "n3"]],
    ["the first octets changed", (octets) => octets.fill(1, 0, 10), ["n1", "n2", "n3"]],
    ["all but the last update gone", (octets) => octets.fill(1, 0, octets.length - 250), ["n3"]],
    ["the first half gone", (octets) => octets.subarray(octets.length / 2), ["n2", "n3"]],
    ["octets of zero, as many as there were", (octets) => octets.fill(0), []],
  ] as const satisfies readonly (readonly [string, (octets: Buffer) => Buffer, readonly string[]])[]) {
    test(title, async (t) => {
      const { path, octets } = await written(folderOf(t));
      const damaged = damage(Buffer.from(octets));
      writeFileSync(path, damaged);
      {
        await using server = await start(path);
        assert.deepEqual(await addedNames(server), names);
        assert.ok((await recordsOf(server, ZONE)).includes("www 60 IN A 192.0.2.2"));
        assert.equal(server.log.match(/is damaged/g)?.length, 1, server.log);
        assert.deepEqual(readFileSync(`${path}.damaged`), damaged);
        assert.ok(await add(server, "n4"));
        await server.stop();
      }
      await using server = await start(path);
      assert.deepEqual(await addedNames(server), [...names, "n4"]);
      assert.doesNotMatch(server.log, /damaged/);
    });
  }

  test("an end that was never acknowledged is cut off", async (t) => {
    const { path, octets } = await written(folderOf(t));
    writeFileSync(path, octets.subarray(0, octets.length - 20));
    await using server = await start(path);
    assert.deepEqual(await addedNames(server), ["n1", "n2"]);
    assert.match(server.log, /ended in \d+ bytes of an update that was never acknowledged/);
    assert.deepEqual(readdirSync(join(path, "..")), ["database"]);
  });

  test("an empty file is a new database", async (t) => {
    const path = join(folderOf(t), "database");
    writeFileSync(path, "");
    await using server = await start(path);
    assert.deepEqual(await addedNames(server), []);
    assert.ok(await add(server, "n1"));
  });
});

test("the server does not start with the database of another zone", async (t) => {
  const folder = folderOf(t);
  const path = join(folder, "database");
  {
    await using server = await start(path);
    assert.ok(await add(server, "n1"));
  }
  const octets = readFileSync(path);
  writeFileSync(join(folder, "db"), SEED);
  const text = corefile(await freePort(), "database").replace(ZONE, "other.test");
  writeFileSync(join(folder, "Corefile"), text);
  await using program = portolan(["-conf", "Corefile"], { cwd: folder });
  assert.equal((await program.ended).code, 1);
  assert.match(program.output + program.errors, /database is the database of zone "example\.org\."/);
  assert.deepEqual(readFileSync(path), octets);
});

suite("the server does not start with a database that is something else", () => {
  for (const [title, make, message] of [
    ["a directory", (path) => mkdirSync(path), /database is a directory: name a file/],
    [
      "a file that cannot be read",
      (path) => symlinkSync(path, path),
      /too many symbolic links encountered, open .database./,
    ],
    [
      "another file",
      (path) => writeFileSync(path, SEED.repeat(3)),
      /database is not a journal of updates: move it away, or name another file/,
    ],
    [
      "a database of CoreDNS",
      (path) =>
        writeFileSync(
          path,
          Buffer.concat([Buffer.alloc(16), Buffer.of(0xed, 0xda, 0x0c, 0xed), Buffer.alloc(64)]),
        ),
      /database is a bbolt database of CoreDNS: let CoreDNS serve it, write the output of "dig ZONE AXFR" to the zone file, and name another file/,
    ],
  ] as const satisfies readonly (readonly [string, (path: string) => void, RegExp])[]) {
    test(title, async (t) => {
      const folder = folderOf(t);
      writeFileSync(join(folder, "db"), SEED);
      make(join(folder, "database"));
      writeFileSync(join(folder, "Corefile"), corefile(await freePort(), "database"));
      await using program = portolan(["-conf", "Corefile"], { cwd: folder });
      const { code } = await program.ended;
      assert.equal(code, 1);
      assert.match(program.output + program.errors, message);
      assert.ok(!existsSync(join(folder, "database.damaged")));
    });
  }
});
