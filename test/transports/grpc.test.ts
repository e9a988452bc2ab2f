/**
 * DNS over gRPC with the library that most Node programs use: as a client of our listener, and as a server for the
 * plugin `grpc`.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  type ChannelCredentials,
  Client,
  credentials,
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type ServiceError,
  status,
} from "@grpc/grpc-js";
import { decodeMessage, encodeMessage } from "../../src/dns/message.ts";
import { Flag } from "../../src/dns/numbers.ts";
import { formatRecord, parseRecord } from "../../src/dns/resource-record.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig } from "../support/dig.ts";
import { queryOctets } from "../support/dns-client.ts";
import { askByGrpc, fromPacket, QUERY_METHOD, toPacket } from "../support/grpc-client.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";

const authority = new CertificateAuthority();
const own = authority.issue({ commonName: "dns", hosts: ["dns.example"] });

const zoneText = (names: number): string =>
  `$TTL 60\n@ SOA ns hm 1 2 3 4 5\n@ NS ns\n${Array.from({ length: names }, (_, n) => `n${n} A 192.0.2.1\n`).join("")}`;

describe("grpc-js asks grpc://", () => {
  let server: Portolan;
  before(async () => {
    server = await Portolan.start(
      (port) => `
.:${port("dns")} grpc://.:${port("plain")} {
    bind 127.0.0.1
    hosts {
        192.0.2.7 www.example.org
        fallthrough
    }
    template IN TXT {
        answer "{{ .Name }} 60 IN TXT ${"x".repeat(200)}"
    }
    file small.zone small.example
    file large.zone large.example
    transfer {
        to *
    }
    acl {
        block type MX
    }
}
grpc://.:${port("secure")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    whoami
}
`,
      {
        files: {
          "cert.pem": own.certificate,
          "key.pem": own.key,
          "small.zone": zoneText(1),
          "large.zone": zoneText(1_000),
        },
      },
    );
  });
  after(() => server[Symbol.asyncDispose]());

  async function asking(
    portName: string,
    trust: ChannelCredentials,
    work: (client: Client) => Promise<void>,
  ): Promise<void> {
    const options = { "grpc.ssl_target_name_override": "dns.example" };
    const client = new Client(`127.0.0.1:${server.portOf(portName)}`, trust, options);
    try {
      await work(client);
    } finally {
      client.close();
    }
  }

  test("in the clear, once and hundreds of times at the same moment", () =>
    asking("plain", credentials.createInsecure(), async (client) => {
      const { answer } = await askByGrpc(client, "www.example.org.");
      assert.deepEqual(answer.map(formatRecord), ["www.example.org.\t3600\tIN\tA\t192.0.2.7"]);
      const names = Array.from({ length: 600 }, (_, n) => `n${n}.example.`);
      const replies = await Promise.all(names.map((name) => askByGrpc(client, name, "TXT")));
      for (const [n, { questions, answer: texts }] of replies.entries()) {
        assert.equal(questions[0]?.name.toString(), names[n]);
        assert.equal(texts.length, 1);
      }
    }));

  test("over TLS", () =>
    asking("secure", credentials.createSsl(Buffer.from(authority.certificate)), async (client) => {
      const { additional } = await askByGrpc(client, "www.example.org.");
      assert.equal(additional.length, 2);
    }));

  test("what is no query gets a status", () =>
    asking("plain", credentials.createInsecure(), async (client) => {
      const call = (path: string, message: Uint8Array): Promise<number> =>
        new Promise((resolve) => {
          client.makeUnaryRequest(
            path,
            toPacket,
            (octets) => Buffer.from(octets),
            message,
            (error: ServiceError | null) => resolve(error?.code ?? status.OK),
          );
        });
      assert.equal(await call(QUERY_METHOD, new Uint8Array(3)), status.UNKNOWN);
      assert.equal(await call("/coredns.dns.DnsService/Watch", new Uint8Array(12)), status.UNIMPLEMENTED);
      assert.equal(await call("/grpc.health.v1.Health/Check", new Uint8Array(12)), status.UNIMPLEMENTED);
      assert.equal(await call(QUERY_METHOD, queryOctets("www.example.org.")), status.OK);
    }));

  test("a zone transfer is one message, with TC if the zone has more", () =>
    asking("plain", credentials.createInsecure(), async (client) => {
      const small = await askByGrpc(client, "small.example.", "AXFR");
      // SOA, NS, one name, SOA.
      assert.deepEqual([small.answer.length, small.flags & Flag.TC], [4, 0]);
      const large = await askByGrpc(client, "large.example.", "AXFR");
      assert.ok(large.answer.length > 4 && large.answer.length < 1_000, `${large.answer.length} records`);
      assert.equal(large.flags & Flag.TC, Flag.TC);
    }));
});

type Handler = (name: string) => readonly string[] | number;

/** A server of grpc-js; a number is the status that a call ends with. */
async function serve(handler: Handler, trust: ServerCredentials): Promise<{ server: Server; port: number }> {
  const query: handleUnaryCall<Buffer, Buffer> = (call, done) => {
    const message = decodeMessage(call.request);
    const outcome = handler(message.questions[0]?.name.toString() ?? "");
    if (typeof outcome === "number") {
      done({ code: outcome, details: `status ${outcome}: déjà vu` });
      return;
    }
    const answer = outcome.map((line) => parseRecord(line));
    const flags = Flag.QR | Flag.AA | (message.flags & Flag.RD);
    done(null, Buffer.from(encodeMessage({ ...message, flags, rcode: 0, answer, additional: [] })));
  };
  const definition: ServiceDefinition = {
    Query: {
      path: QUERY_METHOD,
      requestStream: false,
      responseStream: false,
      requestSerialize: toPacket,
      requestDeserialize: fromPacket,
      responseSerialize: toPacket,
      responseDeserialize: fromPacket,
    },
  };
  const server = new Server();
  server.addService(definition, { Query: query });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", trust, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { server, port };
}

const HANDLER: Handler = (name) => {
  if (name.startsWith("missing.")) return status.NOT_FOUND;
  if (name.startsWith("broken.")) return status.INTERNAL;
  if (name.startsWith("long."))
    return Array.from({ length: 200 }, (_, n) => `${name} 60 IN TXT "${n} ${"x".repeat(250)}"`);
  return [`${name} 60 IN A 192.0.2.1`];
};

for (const way of ["in the clear", "over TLS"]) {
  const isSecure = way === "over TLS";

  describe(`the plugin grpc asks grpc-js ${way}`, () => {
    let folder: string;
    let upstream: Server;
    let second: Server;
    let server: Portolan;
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), "portolan-grpc-"));
      writeFileSync(join(folder, "ca.pem"), authority.certificate);
      const pair = { private_key: Buffer.from(own.key), cert_chain: Buffer.from(own.certificate) };
      const trust = isSecure ? ServerCredentials.createSsl(null, [pair]) : ServerCredentials.createInsecure();
      const [one, other] = [
        await serve(HANDLER, trust),
        await serve(
          HANDLER,
          isSecure ? ServerCredentials.createSsl(null, [pair]) : ServerCredentials.createInsecure(),
        ),
      ];
      upstream = one.server;
      second = other.server;
      const tls = isSecure ? `tls ${join(folder, "ca.pem")}\n tls_servername dns.example` : "";
      server = await Portolan.start(
        (port) => `
.:${port("dns")} {
    bind 127.0.0.1
    errors
    prometheus 127.0.0.1:${port("metrics")}
    grpc . 127.0.0.1:${one.port} 127.0.0.1:${other.port} {
        policy sequential
        ${tls}
    }
}
`,
      );
    });
    after(async () => {
      await server?.[Symbol.asyncDispose]();
      upstream?.forceShutdown();
      second?.forceShutdown();
      rmSync(folder, { recursive: true, force: true });
    });

    test("answers, long ones over TCP, NotFound, and statuses that fail", async () => {
      const { answer, flags } = await dig(server, "www.example.org", "A");
      assert.deepEqual(answer, ["www.example.org. 60 IN A 192.0.2.1"]);
      assert.ok(flags.includes("aa"));
      assert.ok((await dig(server, "long.example.org", "TXT", "+ignore")).flags.includes("tc"));
      assert.equal((await dig(server, "long.example.org", "TXT", "+tcp")).answer.length, 200);
      const missing = await dig(server, "missing.example.org", "A");
      assert.deepEqual([missing.status, missing.answer, missing.authority], ["NXDOMAIN", [], []]);
      assert.equal((await dig(server, "broken.example.org", "A")).status, "SERVFAIL");
      await server.waitForLog(
        /plugin\/errors: 2 broken\.example\.org\. A: rpc error: code = Internal desc = status 13: déjà vu/,
      );
    });

    test("queries survive the end of a server", async () => {
      const ask = (n: number) => dig(server, `n${n}.example.org`, "A");
      const before = await Promise.all(Array.from({ length: 10 }, (_, n) => ask(n)));
      await new Promise<void>((resolve) => upstream.tryShutdown(() => resolve()));
      const behind = await Promise.all(Array.from({ length: 10 }, (_, n) => ask(n)));
      for (const { status: rcode, answer } of [...before, ...behind])
        assert.deepEqual([rcode, answer.length], ["NOERROR", 1]);
      assert.ok((await counted(server, "coredns_grpc_responses_total", /rcode="NOERROR"/)) >= 20);
    });
  });
}
