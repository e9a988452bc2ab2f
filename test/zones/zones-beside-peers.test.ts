/**
 * Random zones and random questions, asked of this server, of NSD and of Knot: the answers are the same, section by section, but for the
 * differences in {@link EXPLAINED}.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { missingTools, skipWithout } from "../../scripts/lib/system-tools.mjs";
import { decodeMessage, encodeMessage, makeQuery } from "../../src/dns/message.ts";
import { Name } from "../../src/dns/name.ts";
import { Flag } from "../../src/dns/numbers.ts";
import type { ResourceRecord } from "../../src/dns/record-kind.ts";
import { formatRecord } from "../../src/dns/resource-record.ts";
import { parseRecordType } from "../../src/dns/type-names.ts";
import { createServer } from "../../src/index.ts";
import { UdpClient } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { randomZone } from "../support/random-zone.ts";
import { ZONE_PEERS } from "../support/zone-peers.ts";

interface Shown {
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly answer: readonly string[];
  readonly authority: readonly string[];
  readonly additional: readonly string[];
}

interface Difference {
  readonly ours: Shown;
  readonly theirs: Shown;
  readonly sections: readonly string[];
}

const isApexNs = (line: string): boolean => /^example\.org\. \d+ in (ns|rrsig ns)\b/.test(line);
const isAddress = (line: string): boolean => / in (a|aaaa|rrsig a|rrsig aaaa)\b/.test(line);
const only = (difference: Difference, ...sections: string[]): boolean =>
  difference.sections.every((section) => sections.includes(section));
const without = (lines: readonly string[], isLeftOut: (line: string) => boolean): string =>
  [...new Set(lines.filter((line) => !isLeftOut(line)))].join("\n");

const isAmong = (some: readonly string[], all: readonly string[]): boolean =>
  some.every((line) => isApexNs(line) || all.includes(line));

/** Why an answer may differ, and how it is known that this and nothing else is the reason. */
const EXPLAINED: readonly { readonly reason: string; readonly holds: (difference: Difference) => boolean }[] =
  [
    {
      reason:
        "As CoreDNS does, we put the NS records of the zone beside every answer; others leave them out at times.",
      holds: (d) =>
        only(d, "authority") && without(d.ours.authority, isApexNs) === without(d.theirs.authority, isApexNs),
    },
    {
      reason:
        "NSD sends addresses of the name servers in the authority section as well; we send those of delegations.",
      holds: (d) =>
        only(d, "additional", "authority") &&
        d.ours.additional.every((line) => d.theirs.additional.includes(line)) &&
        d.theirs.additional.every(isAddress) &&
        without(d.ours.authority, isApexNs) === without(d.theirs.authority, isApexNs),
    },
    {
      reason: "An alias that leads back to itself is sent once by us, and again and again by others.",
      holds: (d) =>
        only(d, "answer", "authority") &&
        without(d.ours.answer, () => false) === without(d.theirs.answer, () => false) &&
        d.theirs.answer.length > d.ours.answer.length,
    },
    {
      reason:
        "A DNAME of a wildcard redirects what lies below the name with the asterisk (RFC 6672 section 3.3 leaves it open); Knot takes it for a wildcard.",
      holds: (d) => [...d.ours.answer, ...d.theirs.answer].some((line) => /^\*.* in dname /.test(line)),
    },
    {
      reason:
        "We send all proofs that RFC 4035 section 3.1.3 and RFC 5155 section 7.2 ask for; others leave some out where the wildcard is an empty non-terminal, or behind an alias.",
      holds: (d) => only(d, "authority") && isAmong(d.theirs.authority, d.ours.authority),
    },
    {
      reason: "NSD proves more than is asked for where a wildcard is asked for by its own name.",
      holds: (d) => only(d, "authority") && isAmong(d.ours.authority, d.theirs.authority),
    },
    {
      reason: "Behind a DNAME, NSD shows an NSEC that does not cover the name.",
      holds: (d) => only(d, "authority") && d.ours.answer.some((line) => / in dname /.test(line)),
    },
  ];

/** Signatures by what they sign: who made them says nothing about the answer. */
function textOf(record: ResourceRecord): string {
  const text = formatRecord(record).toLowerCase().replaceAll("\t", " ");
  return / in rrsig /.test(text) ? text.split(" ").slice(0, 5).join(" ") : text;
}

async function show(client: UdpClient, query: Uint8Array): Promise<Shown> {
  client.send(query);
  const octets = await client.receive(20_000);
  assert.ok(octets, "no answer");
  const { rcode, flags, answer, authority, additional } = decodeMessage(octets);
  const section = (records: readonly ResourceRecord[]): string[] => records.map(textOf).sort();
  return {
    rcode,
    authoritative: (flags & Flag.AA) !== 0,
    answer: section(answer),
    authority: section(authority),
    additional: section(additional),
  };
}

function sign(folder: string, options: readonly string[]): readonly string[] {
  const run = (command: string, ...args: string[]): void =>
    void execFileSync(command, args, { cwd: folder, stdio: "pipe" });
  run("dnssec-keygen", "-q", "-a", "ED25519", "-f", "KSK", "example.org");
  run("dnssec-keygen", "-q", "-a", "ED25519", "example.org");
  run(
    "dnssec-signzone",
    "-S",
    "-x",
    "-P",
    ...options,
    "-O",
    "full",
    "-o",
    "example.org",
    "-f",
    "zone",
    "plain",
  );
  return readFileSync(join(folder, "zone"), "utf8").split("\n");
}

async function compare(
  peerName: "nsd" | "knot",
  signing: readonly string[] | undefined,
  seed: number,
): Promise<void> {
  const [zone] = fc.sample(randomZone, { seed, numRuns: 1 });
  assert.ok(zone);
  const folder = mkdtempSync(join(tmpdir(), "portolan-zones-"));
  try {
    writeFileSync(join(folder, "plain"), `${zone.lines.join("\n")}\n`);
    const lines = signing === undefined ? zone.lines : sign(folder, signing);
    writeFileSync(join(folder, "zone"), `${lines.join("\n")}\n`);
    const port = await freePort();
    const corefile = `.:${port} {\n bind 127.0.0.1\n file zone example.org\n}\n`;
    await using peer = await ZONE_PEERS[peerName].start("example.org", { lines });
    await using server = await createServer({
      corefile: corefile.replace("zone", join(folder, "zone")),
      file: join(folder, "Corefile"),
    });
    await server.start();
    await using ours = await UdpClient.connect({ address: "127.0.0.1", port });
    await using theirs = await UdpClient.connect(peer);
    const unexplained: unknown[] = [];
    for (const { name, type } of zone.questions) {
      const question = { name: Name.parse(name), type: parseRecordType(type) ?? 0, class: 1 };
      const edns = { udpSize: 4096, version: 0, dnssecOk: signing !== undefined, options: [] };
      const query = encodeMessage(makeQuery(question, { id: 7, flags: 0, edns }));
      const shown = { ours: await show(ours, query), theirs: await show(theirs, query) };
      const sections = (["rcode", "authoritative", "answer", "authority", "additional"] as const).filter(
        (section) => JSON.stringify(shown.ours[section]) !== JSON.stringify(shown.theirs[section]),
      );
      const difference = { ...shown, sections };
      if (sections.length === 0 || EXPLAINED.some(({ holds }) => holds(difference))) continue;
      unexplained.push({ question: `${name} ${type}`, ...difference });
    }
    assert.deepEqual(unexplained, [], zone.lines.join("\n"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** More of them: `PORTOLAN_RANDOM_ZONES=100`. */
const ZONES = Number(process.env.PORTOLAN_RANDOM_ZONES ?? 2);

for (const [peerName, program] of [
  ["nsd", "nsd"],
  ["knot", "knotd"],
] as const) {
  for (const [title, options] of [
    ["plain", undefined],
    ["signed with NSEC", []],
    ["signed with NSEC3", ["-3", "abcd", "-H", "2"]],
  ] as const) {
    const skip =
      skipWithout(program) ||
      (options !== undefined && missingTools(["dnssec-signzone"]).length > 0
        ? "not installed: dnssec-signzone"
        : false);
    test(`answers as ${peerName} does from zones that are ${title}`, { skip }, async () => {
      for (let seed = 1; seed <= ZONES; seed++) await compare(peerName, options, seed);
    });
  }
}
