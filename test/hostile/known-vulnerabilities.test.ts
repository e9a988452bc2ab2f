/** Vulnerabilities that were found in other servers, tried on this one. SECURITY.md names each with its test. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { after, before, suite, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { decodeMessage, encodeMessage } from "../../src/dns/message.ts";
import { Flag, rcodeName } from "../../src/dns/numbers.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { recordTypeName } from "../../src/dns/type-names.ts";
import { createServer } from "../../src/index.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig } from "../support/dig.ts";
import { ask, framed, queryOctets } from "../support/dns-client.ts";
import { EtcdServer } from "../support/etcd.ts";
import { QUERY_METHOD } from "../support/grpc-client.ts";
import { CERTIFIED_NAME, MESSAGE_WAYS } from "../support/message-transports.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { rawMessage, rawName, rawQuestion } from "../support/raw-message.ts";
import { untilTrue } from "../support/until-true.ts";
import { SECRET, tsigOf } from "../support/update-messages.ts";

const WRONG_SECRET = Buffer.from("another secret of the same length").toString("base64");
const authority = new CertificateAuthority();
const { certificate, key } = authority.issue({ commonName: "x", hosts: [CERTIFIED_NAME, "127.0.0.1"] });
const FILES = { "cert.pem": certificate, "key.pem": key };

suite("every transport", { skip: skipWithoutQuic() }, () => {
  let server: Portolan;
  before(async () => {
    server = await Portolan.start(
      (port) => `.:${port("dns")} ${["tls", "https", "https3", "grpc", "quic"]
        .map((scheme) => `${scheme}://.:${port(scheme)}`)
        .join(" ")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    tsig {
        secret all.example. ${SECRET}
        require A
    }
    hosts {
        192.0.2.7 www.example.org
        2001:db8::7 www.example.org
    }
}
`,
      { files: FILES },
    );
  });
  after(() => server[Symbol.asyncDispose]());

  for (const [transport, way] of Object.entries(MESSAGE_WAYS)) {
    const send = async (message: Uint8Array): Promise<string> => {
      const reply = await way(server.portOf, authority.certificate, message);
      if (typeof reply === "string") return reply;
      const { rcode, answer } = decodeMessage(reply);
      return [rcodeName(rcode), ...answer.map(formatData)].join(", ");
    };

    test(`a signature is verified over ${transport}`, async () => {
      const query = queryOctets("www.example.org.");
      const sign = (secret?: string): Uint8Array => tsigOf("all", secret).sign(query);
      assert.equal(await send(sign()), "NOERROR, 192.0.2.7");
      // The name of the key is right, and the signature is not.
      assert.equal(await send(sign(WRONG_SECRET)), "NOTAUTH");
      const changed = sign();
      const last = changed.length - 7;
      changed[last] = (changed[last] ?? 0) ^ 1;
      assert.equal(await send(changed), "NOTAUTH");
      assert.equal(await send(query), "REFUSED");
    });

    test(`counts in a header that promise more than there is are refused over ${transport}`, async () => {
      const question = rawQuestion(rawName("www", "example", "org"), 28);
      // Each of these records is a pointer, so that a whole message would unpack to a multiple of its size.
      const records = Buffer.concat(
        Array.from({ length: 4_000 }, () => Buffer.from("c00c00ff0001000000000000", "hex")),
      );
      // Over UDP and TCP a refusal is a message, and over the others what they have for it.
      const refusals = new Set(["FORMERR", "status 400", "dns request rejected", "nothing"]);
      for (const counts of [
        [0xffff, 0, 0, 0],
        [1, 0xffff, 0, 0],
        [1, 0, 0xffff, 0],
        [1, 0, 0, 0xffff],
        [1, 4_000, 0, 0],
      ] as const) {
        const said = await send(rawMessage({ counts: [...counts] }, question, records));
        assert.ok(refusals.has(said), `${counts}: ${said}`);
      }
      assert.equal(await send(rawMessage({}, question)), "NOERROR, 2001:db8::7");
    });
  }
});

/** What HTTP clients can hold: by both schemes over HTTP/2. Those over HTTP/3 are in test/transports/https3.test.ts. */
suite("HTTP/2", () => {
  const MAX_STREAMS = 10;
  const MAX_CONNECTIONS = 5;
  let server: Portolan;
  before(async () => {
    server = await Portolan.start(
      (port) => `.:${port("dns")} https://.:${port("https")} grpc://.:${port("grpc")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")}
    tls cert.pem key.pem
    https {
        max_connections ${MAX_CONNECTIONS}
        max_streams ${MAX_STREAMS}
    }
    grpc_server {
        max_connections ${MAX_CONNECTIONS}
        max_streams ${MAX_STREAMS}
    }
    hosts {
        192.0.2.7 www.example.org
    }
}
`,
      { files: FILES },
    );
  });
  after(() => server[Symbol.asyncDispose]());

  const open = async (scheme: string): Promise<ClientHttp2Session> => {
    const session = connectHttp2(`https://127.0.0.1:${server.portOf(scheme)}`, {
      ca: authority.certificate,
      servername: CERTIFIED_NAME,
    });
    session.on("error", () => undefined);
    await once(session, "remoteSettings");
    return session;
  };

  for (const [scheme, path] of [
    ["https", "/dns-query"],
    ["grpc", QUERY_METHOD],
  ] as const) {
    const headers = {
      ":method": "POST",
      ":path": path,
      "content-type": scheme === "grpc" ? "application/grpc" : "application/dns-message",
    };

    test(`${scheme}:// has a limit of streams, and says so`, async () => {
      const session = await open(scheme);
      try {
        assert.equal(session.remoteSettings.maxConcurrentStreams, MAX_STREAMS);
      } finally {
        session.destroy();
      }
    });

    test(`${scheme}:// has a limit of connections: the longest idle one makes room`, async () => {
      const shed = (): Promise<number> =>
        counted(server, "portolan_dns_shed_total", new RegExp(`server="${scheme}:.*reason="connection"`));
      const before = await shed();
      const sessions: ClientHttp2Session[] = [];
      try {
        for (let count = 0; count < 2 * MAX_CONNECTIONS; count++) sessions.push(await open(scheme));
        await untilTrue(async () => (await shed()) === before + MAX_CONNECTIONS);
        await untilTrue(() => sessions.filter(({ destroyed }) => destroyed).length === MAX_CONNECTIONS);
        assert.ok(sessions.slice(MAX_CONNECTIONS).every(({ destroyed }) => !destroyed));
      } finally {
        for (const session of sessions) session.destroy();
      }
    });

    test(`${scheme}:// takes no body longer than a message`, async () => {
      const session = await open(scheme);
      try {
        const stream = session.request(headers).on("error", () => undefined);
        const ended = once(stream, "close");
        let said: unknown;
        stream.once("response", (response) => {
          said = response["grpc-status"] ?? response[":status"];
          if (said === 200) stream.once("trailers", (trailers) => (said = trailers["grpc-status"]));
        });
        stream.resume();
        // gRPC's prefix of a message of 4 GiB.
        if (scheme === "grpc") stream.write(Buffer.from("00ffffffff", "hex"));
        let sent = 0;
        while (!stream.destroyed && !stream.closed && said === undefined && sent < 64 * 1024 * 1024) {
          sent += 16_384;
          if (!stream.write(Buffer.alloc(16_384)))
            await Promise.race([once(stream, "drain"), ended]).catch(() => 0);
        }
        assert.ok(sent < 4 * 1024 * 1024, `${sent} octets were taken`);
        stream.close();
        await ended;
        // An error of gRPC, of HTTP, or of the stream alone.
        assert.ok(
          said === undefined || Number(said) === 400 || (Number(said) > 0 && Number(said) <= 16),
          String(said),
        );
      } finally {
        session.destroy();
      }
      assert.deepEqual((await ask(server, "www.example.org.")).answer.map(formatData).length, 1);
    });
  }
});

test("a zone and one below it have a rule of transfer each, whichever comes first in the alphabet", {
  skip: skipWithout("dig"),
}, async () => {
  // The name of the parent comes behind that of one child and before that of the other, as texts are compared.
  const zones = ["a.example.org", "example.org", "z.example.org"];
  const files = Object.fromEntries(
    zones.map((zone) => [
      `db.${zone}`,
      `$ORIGIN ${zone}.\n@ 60 SOA ns.example.org. h.example.org. 1 60 60 60 60\n@ 60 NS ns.example.org.\nsecret 60 A 192.0.2.9\n`,
    ]),
  );
  for (const order of [zones, zones.toReversed()]) {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
${order
  .map(
    (zone) => `    transfer ${zone} {
        to ${zone === "example.org" ? "*" : "192.0.2.1"}
    }
    file db.${zone} ${zone}
`,
  )
  .join("")}}
`,
      { files },
    );
    for (const zone of zones)
      for (const type of ["AXFR", "IXFR=0"]) {
        const { output } = await digText(server, zone, type, "+tcp");
        assert.equal(
          /\bsecret\./.test(output),
          zone === "example.org",
          `${zone} ${type} where ${order.join(", ")}: ${output}`,
        );
      }
  }
});

test("clients of DNS over TLS that ask and go away at once cost no other client an answer", async () => {
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} tls://.:${port("tls")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    whoami
}
`,
    { files: FILES },
  );
  const query = framed(queryOctets("www.example.org."));
  for (let count = 0; count < 100; count++) {
    const socket = connectTls({
      host: "127.0.0.1",
      port: server.portOf("tls"),
      ca: authority.certificate,
      servername: CERTIFIED_NAME,
    });
    socket.on("error", () => undefined);
    await once(socket, "secureConnect");
    await new Promise((resolve) => socket.write(query, resolve));
    const closed = once(socket, "close");
    socket.destroy();
    await closed;
  }
  const reply = await MESSAGE_WAYS.tls(server.portOf, authority.certificate, queryOctets("www.example.org."));
  assert.equal(decodeMessage(reply).rcode, 0);
  assert.doesNotMatch(server.log, /\[ERROR\]|panic/);
});

test("an endpoint without ports ends no transfer of external names", {
  skip: skipWithout("dig"),
}, async () => {
  const slice = (name: string, service: string, ports: string): string => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}, namespace: shop, labels: {kubernetes.io/service-name: ${service}}}
addressType: IPv4
endpoints: [{addresses: [10.1.0.${service.length}], conditions: {ready: true}}]
${ports}
`;
  const service = (name: string, ports: string): string => `---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {clusterIP: None, clusterIPs: [None]${ports}}
`;
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    kubernetes cluster.local {
        manifests cluster.yaml
    }
    k8s_external example.org {
        headless
    }
    transfer {
        to *
    }
}
`,
    {
      files: {
        "cluster.yaml": [
          "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n",
          service("bare", ""),
          slice("bare-1", "bare", "ports: []"),
          service("with-ports", ", ports: [{name: sql, port: 3306, protocol: TCP}]"),
          slice("with-ports-1", "with-ports", "ports: [{name: sql, port: 3306, protocol: TCP}]"),
        ].join(""),
      },
    },
  );
  const { output } = await digText(server, "example.org", "AXFR");
  assert.match(output, /^bare\.shop\.example\.org\.\s+\d+\s+IN\s+A\s+10\.1\.0\.4$/m);
  assert.match(output, /^_sql\._tcp\.with-ports\.shop\.example\.org\.\s+\d+\s+IN\s+SRV\s/m);
  assert.equal((await dig(server, "bare.shop.example.org", "A")).status, "NOERROR");
});

test("the name that loop asks for depends neither on the clock nor on numbers that a program can foresee", async (context) => {
  const upstream = createSocket("udp4").bind(0, "127.0.0.1");
  context.after(() => upstream.close());
  await once(upstream, "listening");
  const names: string[] = [];
  upstream.on("message", (octets, from) => {
    const query = decodeMessage(octets);
    const [question] = query.questions;
    // A query that gets no reply in time is sent again under its name.
    if (question !== undefined && recordTypeName(question.type) === "HINFO")
      if (!names.includes(`${question.name}`)) names.push(`${question.name}`);
    upstream.send(
      encodeMessage({ ...query, flags: query.flags | Flag.QR, rcode: 3 }),
      from.port,
      from.address,
    );
  });
  context.mock.method(Math, "random", () => 0.25);
  context.mock.method(Date, "now", () => 1_700_000_000_000);
  for (let count = 1; count <= 4; count++) {
    await using server = await createServer({
      corefile: `.:0 {
  bind 127.0.0.1
  loop
  forward . 127.0.0.1:${upstream.address().port}
}`,
    });
    await server.start();
    await untilTrue(() => names.length === count);
  }
  const numbers = names.flatMap((name) => name.split(".").filter((label) => label !== ""));
  assert.equal(numbers.length, 8);
  for (const number of numbers) assert.match(number, /^\d+$/);
  // Eight numbers of 62 bits: all differ, and a bit that none of them has set comes once in 256 times.
  assert.equal(new Set(numbers).size, 8);
  const set = numbers.reduce((bits, number) => bits | BigInt(number), 0n);
  assert.ok(set >= 1n << 56n && set < 1n << 62n, set.toString(2));
});

suite("etcd", { skip: skipWithout("etcd", "etcdctl") }, () => {
  test("a record lives as long as its lease, and the number of the lease means nothing", async () => {
    await using etcd = await EtcdServer.start();
    const lease = await etcd.putWithLease("/skydns/org/example/leased", { host: "192.0.2.3" }, 120);
    // A number of a lease that, cut to 32 bits, would be a TTL of many years.
    assert.ok(Number.parseInt(lease, 16) > 2 ** 32);
    await etcd.put({ "/skydns/org/example/plain": { host: "192.0.2.4", ttl: 77 } });
    await using server = await createServer({
      corefile: `.:0 {
  bind 127.0.0.1
  etcd example.org {
    endpoint ${etcd.url}
  }
}`,
    });
    await server.start();
    await untilTrue(
      async () => (await server.ask({ name: "leased.example.org", type: "A" })).answer.length > 0,
    );
    const ttlOf = async (name: string): Promise<number> => {
      const { answer } = await server.ask({ name, type: "A" });
      return Number(answer[0]?.split(" ")[1]);
    };
    const leased = await ttlOf("leased.example.org");
    assert.ok(leased > 30 && leased <= 120, String(leased));
    assert.equal(await ttlOf("plain.example.org"), 77);
  });
});

async function digText(server: Portolan, ...words: readonly string[]): Promise<{ output: string }> {
  return run("dig", ["@127.0.0.1", "-p", String(server.port), "+noall", "+answer", ...words]);
}
