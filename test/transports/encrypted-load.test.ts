/** Load over TLS, HTTPS and gRPC: all of it is answered, through reloads and a change of the certificate too. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { connect } from "node:tls";
import { Client, credentials } from "@grpc/grpc-js";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { decodeMessage, type Message } from "../../src/dns/message.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { ask, queryOctets } from "../support/dns-client.ts";
import { dnsperf, type LoadReport } from "../support/dnsperf.ts";
import { askByGrpc } from "../support/grpc-client.ts";
import { type CorefileWriter, Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const skip = skipWithout("dnsperf");
const authority = new CertificateAuthority();

function issue(): { readonly "cert.pem": string; readonly "key.pem": string } {
  const { certificate, key } = authority.issue({ commonName: "dns", hosts: ["127.0.0.1", "dns.example"] });
  return { "cert.pem": certificate, "key.pem": key };
}

/** Each generation differs from the others by one address. */
const generation =
  (number: number): CorefileWriter =>
  (port) =>
    `
.:${port("dns")} tls://.:${port("tls")} https://.:${port("https")} grpc://.:${port("grpc")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")}
    errors
    tls cert.pem key.pem
    hosts {
        203.0.113.${number} generation.example
        192.0.2.7 www.example.org
    }
}
`;
const QUESTIONS = ["generation.example A", "www.example.org A"];

let server: Portolan;
before(async () => {
  server = await Portolan.start(generation(0), { files: issue() });
});
after(() => server[Symbol.asyncDispose]());

function load(transport: "tcp" | "dot", seconds: number): Promise<LoadReport> {
  const server_ = { address: "127.0.0.1", port: server.portOf(transport === "tcp" ? "dns" : "tls") };
  return dnsperf(server_, { questions: QUESTIONS, seconds, transport, queriesPerSecond: 400, clients: 3 });
}

function checkNothingLost({ sent, completed, lost, rcodes, text }: LoadReport): void {
  assert.equal(lost, 0, text);
  assert.equal(completed, sent, text);
  assert.deepEqual([...rcodes], [["NOERROR", sent]], text);
  assert.doesNotMatch(text, /Warning/);
}

test("dnsperf -m dot", { skip }, async () => {
  const report = await load("dot", 1);
  checkNothingLost(report);
  assert.ok(report.sent > 50, report.text);
});

for (const method of ["GET", "POST"] as const) {
  test(`dnsperf -m doh, ${method}`, { skip }, async () => {
    const at = { address: "127.0.0.1", port: server.portOf("https") };
    // Of replies that come in one record of TLS it takes the last alone (its issue 240).
    const many = { clients: 2, outstanding: 100 };
    checkNothingLost(
      await dnsperf(at, { questions: QUESTIONS, seconds: 1, transport: "doh", method, ...many }),
    );
  });

  test(`h2load, ${method}`, { skip: skipWithout("h2load") }, async () => {
    const octets = queryOctets("www.example.org.");
    const body = join(server.folder, "query");
    writeFileSync(body, octets);
    const url = `https://127.0.0.1:${server.portOf("https")}/dns-query`;
    const target =
      method === "GET"
        ? [`${url}?dns=${Buffer.from(octets).toString("base64url")}`]
        : ["-d", body, "-H", "content-type: application/dns-message", url];
    const { output } = await run("h2load", ["-n", "2000", "-c", "4", "-m", "50", ...target]);
    assert.match(output, /2000 succeeded, 0 failed, 0 errored, 0 timeout/);
    assert.match(output, /^status codes: 2000 2xx/m);
  });
}

/** Queries on several streams of one connection until it is stopped. @returns the number of answers */
async function overHttp2(signal: AbortSignal): Promise<number> {
  const session = connectHttp2(`https://127.0.0.1:${server.portOf("https")}`, { ca: authority.certificate });
  let answered = 0;
  try {
    const streams = Array.from({ length: 8 }, async (_, stream) => {
      while (!signal.aborted) {
        const octets = queryOctets("www.example.org.", "A", stream);
        const reply = await post(session, octets);
        assert.equal(reply.id, stream);
        assert.deepEqual(reply.answer.map(formatData), ["192.0.2.7"]);
        answered++;
      }
    });
    await Promise.all(streams);
  } finally {
    session.destroy();
  }
  return answered;
}

async function post(session: ClientHttp2Session, octets: Uint8Array): Promise<Message> {
  const stream = session.request({ ":method": "POST", ":path": "/dns-query" });
  stream.end(octets);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return decodeMessage(Buffer.concat(chunks));
}

/** Queries by gRPC on several streams of one connection until it is stopped. @returns the number of answers */
async function overGrpc(signal: AbortSignal): Promise<number> {
  const trust = credentials.createSsl(Buffer.from(authority.certificate));
  const client = new Client(`127.0.0.1:${server.portOf("grpc")}`, trust);
  let answered = 0;
  try {
    const streams = Array.from({ length: 4 }, async () => {
      while (!signal.aborted) {
        const { answer } = await askByGrpc(client, "www.example.org.");
        assert.deepEqual(answer.map(formatData), ["192.0.2.7"]);
        answered++;
      }
    });
    await Promise.all(streams);
  } finally {
    client.close();
  }
  return answered;
}

/** The serial number of what a client is shown. */
async function serialNumber(): Promise<string | undefined> {
  const socket = connect({ port: server.portOf("tls"), host: "127.0.0.1", ca: authority.certificate });
  await once(socket, "secureConnect");
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  return certificate?.serialNumber;
}

for (const [title, cause] of [
  ["reloads", reloads],
  ["a change of the certificate", changeOfCertificate],
] as const) {
  test(`no query is lost in ${title}`, { skip }, async (t) => {
    const before = await serialNumber();
    const stop = new AbortController();
    const streams = Promise.all([overHttp2(stop.signal), overGrpc(stop.signal)]);
    const loads = Promise.all([load("tcp", 3), load("dot", 3)]);
    const [reports, what] = await Promise.all([loads, cause(loads)]);
    stop.abort();
    for (const report of reports) checkNothingLost(report);
    const answered = await streams;
    for (const count of answered) assert.ok(count > 0);
    assert.notEqual(await serialNumber(), before);
    assert.doesNotMatch(server.log, /\[(ERROR|FATAL)\]/);
    const sent = reports.map((report) => report.sent);
    t.diagnostic(`${what}; queries over TCP, TLS, HTTPS and gRPC: ${[...sent, ...answered].join(", ")}`);
  });
}

/** One after the other, as long as there is load, the first with another certificate. */
async function reloads(loads: Promise<unknown>): Promise<string> {
  let hasEnded = false;
  void loads.finally(() => {
    hasEnded = true;
  });
  for (const [name, text] of Object.entries(issue())) writeFileSync(join(server.folder, name), text);
  let count = 0;
  while (count < 2 || !hasEnded) {
    count++;
    assert.match(await server.reload(generation(count % 250)), /Reloading complete/);
    const { answer } = await ask(server, "generation.example");
    assert.deepEqual(answer.map(formatData), [`203.0.113.${count % 250}`]);
  }
  return `${count} reloads`;
}

async function changeOfCertificate(): Promise<string> {
  const start = server.log.length;
  for (const [name, text] of Object.entries(issue())) writeFileSync(join(server.folder, name), text);
  await server.waitForLog(/certificate .*cert\.pem is in use for new connections/, start);
  return "another certificate";
}
