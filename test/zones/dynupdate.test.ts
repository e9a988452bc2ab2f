/** Updates of a zone of `dynupdate` with BIND's nsupdate. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { ask } from "../support/dns-client.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const SECRET = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const KEY = `hmac-sha256:all.example:${SECRET}`;
const FEW = `hmac-sha256:few.example:${SECRET}`;
const OTHER = `hmac-sha256:other.example:${SECRET}`;

const ZONE = `$TTL 60
@ SOA ns1 host 7 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.2
alias CNAME www
`;

function corefile(port: number, options: string): string {
  return `example.org:${port} {
    bind 127.0.0.1
    errors
    tsig {
        secret all.example ${SECRET}
        secret few.example ${SECRET}
        secret other.example ${SECRET}
    }
    transfer {
        to *
    }
    cache 30
    dynupdate {
        file db
        allow all.example * *
        allow few.example few.example.org. TXT
        ${options}
    }
    reload 2s
}
`;
}

function start(options: string, files: Record<string, string> = { db: ZONE }): Promise<Portolan> {
  return Portolan.start((port) => corefile(port("dns"), options), { files });
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

async function serialOf(port: number): Promise<number> {
  const { answer } = await ask({ address: "127.0.0.1", port }, "example.org", "SOA");
  const data: unknown = answer[0]?.data;
  assert.ok(typeof data === "object" && data !== null && "serial" in data);
  return Number(data.serial);
}

/** What nsupdate says, by what is asked of a zone that began as {@link ZONE}; each row follows the one before. */
const ROWS: readonly (readonly [lines: string, said: string, serial: number, key?: string])[] = [
  ["add a 60 A 192.0.2.3", "NOERROR", 8],
  ["add a 60 A 192.0.2.3", "NOERROR", 8],
  ["add a 90 A 192.0.2.3", "NOERROR", 9],
  ["add a 60 A 192.0.2.4", "NOERROR", 10],
  ["delete a A 192.0.2.4", "NOERROR", 11],
  ["delete a A 192.0.2.4", "NOERROR", 11],
  ["delete none A", "NOERROR", 11],
  ["delete none", "NOERROR", 11],
  ["add a 60 CNAME www", "NOERROR", 11],
  ["add alias 60 A 192.0.2.9", "NOERROR", 11],
  ["add alias 60 CNAME www", "NOERROR", 11],
  ["add alias 60 CNAME ns1", "NOERROR", 12],
  ["delete @", "NOERROR", 12],
  ["delete @ NS ns1", "NOERROR", 12],
  ["add @ 60 NS ns2", "NOERROR", 13],
  ["delete @ NS ns2", "NOERROR", 14],
  ["delete @ SOA", "NOERROR", 14],
  ["add @ 60 SOA ns1 host 5 3600 600 86400 60", "NOERROR", 14],
  ["add @ 60 SOA ns1 host 14 3600 600 86400 60", "NOERROR", 14],
  ["add @ 60 SOA ns1 host 20 3600 600 86400 60", "NOERROR", 20],
  ["add b 60 A 192.0.2.5|add c 60 A 192.0.2.5", "NOERROR", 21],
  ["delete b", "NOERROR", 22],
  ["delete c A", "NOERROR", 23],
  ["add a 60 DS 1 8 2 49FD46E6C4B45C55D4AC49FD46E6C4B45C55D4AC49FD46E6C4B45C55D4AC1234", "NOTIMP", 23],
  ["add @ 60 DNSKEY 256 3 8 AwEAAQ==", "NOTIMP", 23],
  ["add @ 60 CDNSKEY 256 3 8 AwEAAQ==", "NOTIMP", 23],
  ["add @ 60 NSEC3PARAM 1 0 0 -", "NOTIMP", 23],
  ["add a 60 NSEC www A", "NOTIMP", 23],
  ["delete a DS", "NOTIMP", 23],
  ["prereq yxdomain www|add p1 60 A 192.0.2.1", "NOERROR", 24],
  ["prereq yxdomain none|add p2 60 A 192.0.2.1", "NXDOMAIN", 24],
  ["prereq nxdomain none|add p3 60 A 192.0.2.1", "NOERROR", 25],
  ["prereq nxdomain www|add p4 60 A 192.0.2.1", "YXDOMAIN", 25],
  ["prereq yxrrset www A|add p5 60 A 192.0.2.1", "NOERROR", 26],
  ["prereq yxrrset www TXT|add p6 60 A 192.0.2.1", "NXRRSET", 26],
  ["prereq nxrrset www TXT|add p7 60 A 192.0.2.1", "NOERROR", 27],
  ["prereq nxrrset www A|add p8 60 A 192.0.2.1", "YXRRSET", 27],
  ["prereq yxrrset www A 192.0.2.2|add p9 60 A 192.0.2.1", "NOERROR", 28],
  ["prereq yxrrset www A 192.0.2.3|add p10 60 A 192.0.2.1", "NXRRSET", 28],
  ["prereq nxdomain www.example.net.|add p11 60 A 192.0.2.1", "NOTZONE", 28],
  ["add www.example.net. 60 A 192.0.2.1", "NOTZONE", 28],
  ["delete www.example.net.", "NOTZONE", 28],
  ["add few 60 TXT x", "NOERROR", 29, FEW],
  ["add few 60 A 192.0.2.1", "REFUSED", 29, FEW],
  ["add www 60 TXT x", "REFUSED", 29, FEW],
  ["add few 60 TXT y|add www 60 TXT x", "REFUSED", 29, FEW],
  ["delete few", "REFUSED", 29, FEW],
  ["delete few A", "REFUSED", 29, FEW],
  ["delete few TXT x", "NOERROR", 30, FEW],
  ["prereq yxdomain none|add www 60 TXT x", "NXDOMAIN", 30, FEW],
  ["add www.example.net. 60 TXT x", "REFUSED", 30, FEW],
  ["add few 60 DNSKEY 256 3 8 AwEAAQ==", "REFUSED", 30, FEW],
  ["add few 60 TXT x", "REFUSED", 30, OTHER],
  ["prereq yxdomain none|add few 60 TXT x", "REFUSED", 30, OTHER],
  ["add few 60 TXT x", "REFUSED", 30, ""],
  ["add few 60 TXT x", "NOTAUTH", 30, `hmac-sha256:unknown.example:${SECRET}`],
  ["add m1 60 A 192.0.2.1|add m2 60 A 192.0.2.1|add m3 60 A 192.0.2.1|add m4 60 A 192.0.2.1", "REFUSED", 30],
  ["prereq yxdomain www|add m1 60 A 192.0.2.1|add m2 60 A 192.0.2.1|add m3 60 A 192.0.2.1", "REFUSED", 30],
  ["add m1 60 A 192.0.2.1|add m2 60 A 192.0.2.1|add m3 60 A 192.0.2.1", "NOERROR", 31],
  ["add l1 60 A 192.0.2.1|add l2 60 A 192.0.2.1|add l3 60 A 192.0.2.1", "REFUSED", 31],
  ["delete m1|add l1 60 A 192.0.2.1", "NOERROR", 32],
  ["add l2 60 A 192.0.2.1", "REFUSED", 32],
  ["delete l1", "NOERROR", 33],
];

/** Names of the zone in full. */
function inZone(line: string): string {
  return line
    .replace(
      /^((?:prereq \w+|add|delete) )(\S+)/,
      (_all, head: string, name: string) =>
        head + (name === "@" ? "example.org." : name.endsWith(".") ? name : `${name}.example.org.`),
    )
    .replace(/( CNAME | NS )(\w+)$/, "$1$2.example.org.")
    .replace(/SOA ns1 host/, "SOA ns1.example.org. host.example.org.");
}

suite("dynupdate with nsupdate", { skip: skipWithout("nsupdate") }, () => {
  test("each rule gives its rcode and its serial", async () => {
    await using server = await start("max_update_records 3\n        max_records 14");
    const { port } = server;
    const seen: string[] = [];
    const expected: string[] = [];
    for (const [lines, rcode, serial, key] of ROWS) {
      const said = await nsupdate(port, lines.split("|").map(inZone), key ?? KEY);
      const word = said === "done" ? "NOERROR" : (/[A-Z]{6,}/.exec(said.replaceAll("SOA", ""))?.[0] ?? said);
      seen.push(`${lines}: ${word} ${await serialOf(port)}`);
      expected.push(`${lines}: ${rcode} ${serial}`);
    }
    assert.deepEqual(seen, expected);
  });
});
