/** Signed zone files, judged by the tools of others. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { createServer } from "../../src/index.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { FakeClock } from "../../src/lib/time/clock.ts";
import { ask } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { newKeyFiles } from "../support/key-files.ts";
import { run } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

const ZONE = `$TTL 60
@ SOA a. b. 5 7200 3600 1209600 300
@ NS ns
@ MX 10 www
ns A 192.0.2.9
www A 192.0.2.1
www AAAA 2001:db8::1
*.w TXT "w"
deep.empty.non.terminal TXT "x"
UPPER.Case MX 10 Mail.Example.NET.
sub NS ns.sub
ns.sub A 192.0.2.2
glue.sub AAAA 2001:db8::2
sub DS 1 13 2 0202020202020202020202020202020202020202020202020202020202020202
insecure NS ns.elsewhere.test.
d DNAME example.net.
@ CDS 1 13 2 0101010101010101010101010101010101010101010101010101010101010101
@ DNSKEY 257 3 13 AAAA
www RRSIG A 13 3 60 20300101000000 20200101000000 1 a. AAAA
www NSEC a.example.org. A
`;

async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-sign-"));
  try {
    writeFileSync(join(folder, "db"), ZONE);
    const files = newKeyFiles("example.org.");
    writeFileSync(join(folder, "Kone.key"), files.key);
    writeFileSync(join(folder, "Kone.private"), files.private);
    await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function signing(
  folder: string,
  option: string,
  key = "Kone",
  clock = new FakeClock({ wallTime: Date.now() }),
) {
  const log = new MemoryLog();
  const port = await freePort();
  const corefile = `example.org:${port} {
    bind 127.0.0.1
    file ${folder}/db.example.org.signed {
        reload 1s
    }
    sign ${folder}/db {
        key file ${folder}/${key}
        directory ${folder}
        ${option}
    }
}`;
  const server = await createServer({ corefile, log, clock });
  await server.start();
  const waitFor = async (pattern: RegExp, from = 0) => {
    const end = performance.now() + 20_000;
    while (!log.lines.slice(from).some((line) => pattern.test(line))) {
      assert.ok(performance.now() < end, log.lines.join("\n"));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  };
  return { server, log, port, clock, waitFor };
}

suite("a signed zone is whole", { skip: skipWithout("dnssec-verify", "ldns-verify-zone") }, () => {
  for (const option of ["", "nsec3"]) {
    test(`with ${option === "" ? "nsec" : option}`, async () => {
      await inFolder(async (folder) => {
        const { server, waitFor, port, clock } = await signing(folder, option);
        await using _stopped = server;
        await waitFor(/Successfully signed zone "example.org." in/);
        const file = join(folder, "db.example.org.signed");
        const verified = await run("dnssec-verify", ["-z", "-o", "example.org", file]);
        assert.match(verified.output + verified.errors, /Zone fully signed/);
        const seen = await run("ldns-verify-zone", [file]);
        assert.match(seen.output + seen.errors, /Zone is verified and complete/, readFileSync(file, "utf8"));
        assert.deepEqual(
          readdirSync(folder).filter((name) => name.startsWith("signed-")),
          [],
        );
        // It may look at the file a moment too early.
        const moving = setInterval(() => clock.advance(1_000), 20);
        await waitFor(/Successfully reloaded zone/).finally(() => clearInterval(moving));
        const reply = await ask({ address: "127.0.0.1", port }, "www.example.org");
        assert.equal(reply.rcode, 0);
      });
    });
  }
});

test("valid signatures are left alone; a newer file and a new key are not", async () => {
  await inFolder(async (folder) => {
    {
      const { server, waitFor } = await signing(folder, "");
      await waitFor(/Signing "example.org." because open .*: no such file or directory/);
      await waitFor(/Successfully signed/);
      await server.stop();
    }
    const { server, log, waitFor, clock } = await signing(folder, "");
    await waitFor(/Skipping signing zone "example.org." in/);
    // A zone with a fault leaves the signed file as it is, and is named once.
    const before = readFileSync(join(folder, "db.example.org.signed"), "utf8");
    // The time of a file is as coarse as the kernel's clock.
    const changedAt = () => statSync(join(folder, "db"), { bigint: true }).mtimeNs;
    const first = changedAt();
    await untilTrue(() => {
      writeFileSync(join(folder, "db"), "www A nonsense\n");
      return changedAt() !== first;
    });
    await clock.settle(60_000);
    await waitFor(/\[WARNING\] plugin\/sign: Error signing "example.org." from ".*db": failed to parse/);
    assert.equal(readFileSync(join(folder, "db.example.org.signed"), "utf8"), before);
    writeFileSync(join(folder, "db"), `${ZONE}new A 192.0.2.77\n`);
    const from = log.lines.length;
    await clock.settle(60_000);
    await waitFor(/Signing "example.org." because .*db has changed since/, from);
    await waitFor(/Successfully signed/, from);
    await server.stop();
    const files = newKeyFiles("example.org.");
    writeFileSync(join(folder, "Ktwo.key"), files.key);
    writeFileSync(join(folder, "Ktwo.private"), files.private);
    const other = await signing(folder, "", "Ktwo");
    await other.waitFor(/because the key with tag \d+ is not one of the signing keys/);
    await other.waitFor(/Successfully signed/);
    await other.server.stop();
  });
});

for (const [what, files, message] of [
  ["a ZSK", newKeyFiles("example.org.", 256), /DNSKEY in ".*Kone\.key" is not a CSK\/KSK/],
  [
    "a key of another zone",
    newKeyFiles("example.net."),
    /no key of 'sign .*db' belongs to the zone example\.org\./,
  ],
] as const) {
  test(`${what} is refused`, async () => {
    await inFolder(async (folder) => {
      writeFileSync(join(folder, "Kone.key"), files.key);
      writeFileSync(join(folder, "Kone.private"), files.private);
      await assert.rejects(signing(folder, ""), message);
    });
  });
}
