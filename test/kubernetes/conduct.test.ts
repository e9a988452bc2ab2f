/**
 * Rules of Kubernetes DNS that no single question to an unchanging cluster shows: flags, size, many questions at once, what becomes of them
 * elsewhere, a cluster that is not known yet and one that is gone. Over a live API and over manifests.
 */
import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { after, before, describe, it } from "node:test";
import { decodeMessage, encodeMessage, type Message, makeQuery } from "../../src/dns/message.ts";
import { Name } from "../../src/dns/name.ts";
import { Flag, Rcode, rcodeName } from "../../src/dns/numbers.ts";
import { RecordType } from "../../src/dns/type-names.ts";
import { nameServerChange } from "../fixtures/kubernetes/changes.ts";
import { OUTSIDE } from "../fixtures/kubernetes/rules.ts";
import { CHANGING_CLUSTERS, type ChangingCluster, service, slice } from "../support/changing-cluster.ts";
import { queryOctets, type Server, TcpClient, UdpClient } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { applyObject } from "../support/kubernetes-api/control-plane.ts";
import { checkChange } from "../support/kubernetes-changes.ts";
import {
  absoluteName,
  askOverTcp,
  checkReply,
  OutsideWorld,
  summaryOf,
  summaryWanted,
  untilSynced,
} from "../support/kubernetes-rules.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const WEB = absoluteName("web.default.svc");

/** More than a datagram of any size holds. */
const MANY = Array.from({ length: 300 }, (_, at) => `10.1.${at >>> 8}.${at & 0xff}`);

/** Address and port of `moving` tell of the same state. */
const moving = (state: number) =>
  service("moving", { clusterIP: `10.96.4.${state}`, ports: [{ name: "http", port: 8000 + state }] });
const movingAnswer = (state: number) =>
  summaryWanted({
    answer: [`SRV 0 100 ${8000 + state} moving.default.svc`],
    additional: [`moving.default.svc A 10.96.4.${state}`],
  });

/** One of this machine's, by which a cluster reaches the server: those that it is not bound to are not its own. */
const OWN_ADDRESSES = Object.values(networkInterfaces())
  .flatMap((entries = []) => entries)
  .filter(({ internal, family }) => !internal && family === "IPv4")
  .map(({ address }) => address)
  .slice(0, 1);
const NAME_SERVERS = nameServerChange(OWN_ADDRESSES);
const skipAlone = OWN_ADDRESSES.length === 0 && "this machine has no address but its own";

const GIVEN = [
  ...NAME_SERVERS.given,
  service("web", { clusterIP: "10.96.3.1", ports: [{ name: "http", port: 80 }] }),
  service("db", { clusterIP: "None" }),
  slice("db", [{ addresses: ["10.0.0.1"], hostname: "db-0" }]),
  service("many", { clusterIP: "None" }),
  slice(
    "many",
    MANY.map((address) => ({ addresses: [address] })),
  ),
  service("large", { type: "ExternalName", externalName: "large.example.com" }),
  moving(0),
];

/** The first of these names is none of the cluster's, the second is one of another family. */
const ELSEWHERE = [
  "printer.default.svc.cluster.local. 60 IN A 192.0.2.80",
  "web.default.svc.cluster.local. 60 IN AAAA 2001:db8::80",
];

for (const [title, startCluster] of CHANGING_CLUSTERS) {
  describe(`over ${title} the server`, () => {
    let cluster: ChangingCluster;
    let outside: OutsideWorld;
    let program: Portolan;

    before(async () => {
      cluster = await startCluster();
      for (const object of GIVEN) cluster.put(object);
      outside = await OutsideWorld.start({
        records: [...OUTSIDE, ...ELSEWHERE],
        cut: ["large.example.com."],
      });
      const block = (port: number, option: string) =>
        `.:${port} {
          bind 127.0.0.1 ${OWN_ADDRESSES.join(" ")}
          kubernetes cluster.local in-addr.arpa ip6.arpa {
            ${cluster.source}
            ${option}
          }
          forward . 127.0.0.1:${outside.port}
        }
        `;
      program = await Portolan.start(
        (port) => block(port("dns"), "") + block(port("fallthrough"), "fallthrough"),
      );
      await untilSynced(program);
      await untilTrue(async () => (await askOverTcp(fallingThrough(), WEB, "A")).answer.length > 0, {
        what: "the second block answers",
        log: () => program.log,
      });
    });

    after(async () => {
      await program?.[Symbol.asyncDispose]();
      await outside?.[Symbol.asyncDispose]();
      await cluster?.[Symbol.asyncDispose]();
    });

    const fallingThrough = (): Server => ({ address: "127.0.0.1", port: program.portOf("fallthrough") });

    for (const [desired, flags] of [
      [Flag.RD, Flag.QR | Flag.AA | Flag.RD],
      [0, Flag.QR | Flag.AA],
    ] as const) {
      it(`sets AA, never RA, and copies an RD of ${desired === 0 ? 0 : 1}`, async () => {
        await using client = await TcpClient.connect(program);
        for (const [labels, rcode] of [
          ["web.default.svc", Rcode.NOERROR],
          ["default.svc", Rcode.NOERROR],
          ["nosuch.default.svc", Rcode.NXDOMAIN],
        ] as const) {
          const question = { name: Name.parse(absoluteName(labels)), type: RecordType.A };
          client.send(encodeMessage(makeQuery(question, { id: 7, flags: desired })));
          const reply = decodeMessage((await client.receive()) ?? assert.fail("no answer"));
          assert.deepEqual([reply.id, reply.flags, reply.rcode], [7, flags, rcode], labels);
        }
      });
    }

    it("cuts what is too large for a datagram, and has it whole over TCP", async () => {
      const asked = absoluteName("many.default.svc");
      const [reply] = await askTogether(program, [[asked, "A"]]);
      assert.equal(reply?.flags, Flag.QR | Flag.AA | Flag.TC | Flag.RD);
      checkReply(
        await askOverTcp(program, asked, "A"),
        asked,
        MANY.map((address) => `A ${address}`),
      );
    });

    it("says that the answer for an external name was cut elsewhere", async () => {
      const asked = absoluteName("large.default.svc");
      const [reply] = await askTogether(program, [[asked, "A"]]);
      assert.ok(reply !== undefined && (reply.flags & Flag.TC) !== 0, "TC is not set");
      assert.equal(summaryOf(reply, asked), summaryWanted(["CNAME large.example.com."]));
    });

    it("answers all that clients ask at once from one socket", async () => {
      // A pair for a name as glibc asks, and the whole search list as musl does.
      const questions = ["web.default.svc", "web.default.svc.default.svc", "web.default.svc.svc"].flatMap(
        (name) => ["A", "AAAA"].map((type) => [absoluteName(name), type] as const),
      );
      const replies = await askTogether(program, questions);
      for (const [index, expected] of ([["A 10.96.3.1"], "ND", "NX", "NX", "NX", "NX"] as const).entries()) {
        const reply = replies[index] ?? assert.fail(`no answer to ${questions[index]?.join(" ")}`);
        checkReply(reply, questions[index]?.[0] ?? "", expected);
      }
    });

    it("says of six questions in eight that an external name is not in the cluster", async () => {
      const names = ["default.svc.cluster.local.", "svc.cluster.local.", "cluster.local.", ""].map(
        (suffix) => `www.example.com.${suffix}`,
      );
      const questions = names.flatMap((name) => ["A", "AAAA"].map((type) => [name, type] as const));
      const replies = await askTogether(program, questions);
      for (const [index, reply] of replies.slice(0, 6).entries())
        checkReply(reply, questions[index]?.[0] ?? "", "NX");
      assert.deepEqual(
        replies.slice(6).map((reply) => summaryOf(reply, "www.example.com.")),
        [summaryWanted(["A 192.0.2.53"]), summaryWanted(["AAAA 2001:db8::53"])],
      );
    });

    it("lets names fall through that do not exist, and none that has no records of the type", async () => {
      const printer = absoluteName("printer.default.svc");
      checkReply(await askOverTcp(program, printer, "A"), printer, "NX");
      const [elsewhere, withoutRecord] = await askTogether(fallingThrough(), [
        [printer, "A"],
        [WEB, "AAAA"],
      ]);
      assert.ok(elsewhere !== undefined && withoutRecord !== undefined);
      assert.equal(summaryOf(elsewhere, printer), summaryWanted(["A 192.0.2.80"]));
      checkReply(withoutRecord, WEB, "ND");
    });

    it("answers from one state while the cluster changes", async () => {
      const asked = absoluteName("_http._tcp.moving.default.svc");
      const last = 100;
      const states = new Set(Array.from({ length: last + 1 }, (_, state) => movingAnswer(state)));
      const answer = async () => {
        const seen = summaryOf(await askOverTcp(program, asked, "SRV"), asked);
        assert.ok(states.has(seen), seen);
        return seen;
      };
      for (let state = 1; state <= last; state++) {
        cluster.put(moving(state));
        await answer();
      }
      let seen = "";
      await untilTrue(() => seen === movingAnswer(last), {
        what: "the last state",
        log: () => program.log,
        between: async () => {
          seen = await answer();
        },
      });
    });

    // Not behind a cache, which keeps the NS records of a zone for their TTL.
    it(`is named by ${NAME_SERVERS.title}`, { skip: skipAlone }, () =>
      checkChange(NAME_SERVERS, cluster, program),
    );

    // The last one, because there is no way back.
    it("goes on from what it knows when the cluster is gone", async () => {
      const start = program.log.length;
      await cluster.lose();
      await program.waitForLog(/\[(WARNING|ERROR)\] plugin\/kubernetes: /, start);
      for (const [labels, type, expected] of [
        ["web.default.svc", "A", ["A 10.96.3.1"]],
        ["db-0.db.default.svc", "A", ["A 10.0.0.1"]],
        ["1.0.0.10.in-addr.arpa.", "PTR", ["PTR db-0.db.default.svc"]],
        ["nosuch.default.svc", "A", "NX"],
      ] as const) {
        const asked = absoluteName(labels);
        checkReply(await askOverTcp(program, asked, type), asked, expected);
      }
    });
  });
}

it("before the first lists are complete, what is known is answered and the rest is SERVFAIL", async () => {
  await using api = await ApiSimulator.start();
  for (const object of GIVEN) applyObject(api, object);
  api.faults.add({
    fault: { kind: "status", code: 503 },
    when: ({ resource }) => resource === "endpointslices",
    times: Number.POSITIVE_INFINITY,
  });
  await using program = await Portolan.start((port) =>
    [
      `.:${port("dns")} {`,
      "  bind 127.0.0.1",
      `  kubernetes cluster.local in-addr.arpa {\n    endpoint ${api.url}\n    startup_timeout 10m\n  }`,
      "}",
    ].join("\n"),
  );
  await untilTrue(async () => (await askOverTcp(program, WEB, "A")).rcode !== Rcode.SERVFAIL, {
    what: "the Service is known",
    log: () => program.log,
  });
  checkReply(await askOverTcp(program, WEB, "A"), WEB, ["A 10.96.3.1"]);
  const unknown = ["nosuch.default.svc", "db.default.svc", "db-0.db.default.svc"].map(absoluteName);
  for (const asked of unknown) {
    const { rcode, answer, authority } = await askOverTcp(program, asked, "A");
    assert.deepEqual(
      [rcodeName(rcode), answer.length, authority.map(({ type }) => type)],
      ["SERVFAIL", 0, [RecordType.SOA]],
      asked,
    );
  }
  api.faults.clear();
  await untilSynced(program);
  for (const [at, expected] of (["NX", ["A 10.0.0.1"], ["A 10.0.0.1"]] as const).entries()) {
    const asked = unknown[at] ?? "";
    checkReply(await askOverTcp(program, asked, "A"), asked, expected);
  }
});

/** Sends all questions before it reads a reply. @returns the replies in the order of the questions */
async function askTogether(
  server: Server,
  questions: readonly (readonly [name: string, type: string])[],
): Promise<Message[]> {
  await using client = await UdpClient.connect(server);
  for (const [id, [name, type]] of questions.entries()) client.send(queryOctets(name, type, id));
  const replies: Message[] = [];
  while (replies.length < questions.length)
    replies.push(decodeMessage((await client.receive()) ?? assert.fail("a reply is missing")));
  return replies.sort((left, right) => left.id - right.id);
}
