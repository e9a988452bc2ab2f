/**
 * Answers recorded from CoreDNS 1.14.7 over HTTPS, gRPC and TLS, and its handshakes, asked of this server. Where it differs on purpose,
 * `DIFFERENCES` has the case and the reason.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request as requestPlain } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { request as requestTls } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { connect as connectTls, type SecureVersion } from "node:tls";
import { decodeMessage } from "../../src/dns/message.ts";
import { rcodeName } from "../../src/dns/numbers.ts";
import { createServer } from "../../src/index.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { freePort } from "../support/free-ports.ts";
import { readLines } from "../support/vectors/vector-set.ts";
import { recordText } from "../support/vectors/vector-text.ts";

interface Dns {
  readonly rcode: string;
  readonly answer: readonly string[];
  readonly authority: readonly string[];
}

interface Case {
  readonly http?: { readonly args: readonly string[]; readonly url: string; readonly body: string | null };
  readonly grpc?: { readonly method: string; readonly msg: string };
  readonly tls?: { readonly alpn?: readonly string[] | null; readonly max_version?: string | null };
  readonly query_hex?: string;
  readonly r: {
    readonly status?: number | string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly id?: string;
    readonly message?: string;
    readonly dns?: Dns;
    readonly alpn?: string | null;
    readonly version?: string;
    readonly error?: string;
  };
}

interface ListenerSet {
  readonly id: string;
  readonly corefile: string;
  readonly files: Readonly<Record<string, string>>;
  readonly cases: readonly Case[];
}

const STRICT_ALPN =
  "A client of DNS over TLS that offers application protocols (ALPN) without `dot` is refused, as RFC 7301 requires; `dot` is confirmed";
const DENIAL_TTL =
  "The SOA record of a negative answer has its minimum field as TTL if that is lower (RFC 2308 section 3).";
const DIFFERENCES: ReadonlyMap<string, string> = new Map([
  ...[4, 5, 6, 7, 8, 9, 10].map((number): [string, string] => [`dot ${number}`, STRICT_ALPN]),
  ["doh-tls 26", DENIAL_TTL],
  ["doh-plain 26", DENIAL_TTL],
  ["grpc-tls 9", "A message that ends within its question is malformed."],
  ["grpc-alpn 5", "A client of DNS over gRPC that only offers `http/1.1` is refused in the handshake."],
]);

test("every difference is told to those who come from CoreDNS", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/compatibility.md"), "utf8").replaceAll(
    /\s+/g,
    " ",
  );
  for (const reason of DIFFERENCES.values()) assert.ok(page.includes(reason), reason);
});

const authority = new CertificateAuthority();
const pair = authority.issue({ commonName: "example.org", hosts: ["example.org", "127.0.0.1"] });

for (const set of readLines<ListenerSet>("zones/listeners.jsonl")) {
  // Client certificates have tests of their own.
  const cases = set.cases.flatMap((one, index) =>
    one.http !== undefined || one.grpc !== undefined || (one.tls !== undefined && one.query_hex === undefined)
      ? [{ ...one, name: `${set.id} ${index + 1}` }]
      : [],
  );
  if (cases.length === 0) continue;
  describe(set.id, async () => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-"));
    const port = await freePort();
    const fill = (text: string): string =>
      text
        .replaceAll("{{dir}}", folder)
        .replaceAll("{{port}}", String(port))
        .replaceAll(/ {4}transfer \{[^}]*\}\n/g, "");
    for (const [name, text] of Object.entries(set.files)) {
      const known = { "{{certificate}}": pair.certificate, "{{private key}}": pair.key };
      writeFileSync(join(folder, name), known[text as keyof typeof known] ?? fill(text));
    }
    const server = await createServer({
      corefile: fill(set.corefile),
      file: join(folder, "Corefile"),
      log: new MemoryLog(),
    });
    await server.start();
    test("all cases", async (t) => {
      t.after(async () => {
        await server.stop();
        rmSync(folder, { recursive: true, force: true });
      });
      const encrypted = fill(set.corefile).includes("tls ");
      const actual: Record<string, object> = {};
      const expected: Record<string, object> = {};
      for (const one of cases) {
        const [mine, theirs] = await outcomes(one, port, encrypted);
        if (DIFFERENCES.has(one.name)) {
          assert.notDeepEqual(mine, theirs, `${one.name} no longer differs`);
          continue;
        }
        actual[one.name] = mine;
        expected[one.name] = theirs;
      }
      assert.deepEqual(actual, expected);
    });
  });
}

async function outcomes(one: Case, port: number, encrypted: boolean): Promise<readonly [object, object]> {
  const { r } = one;
  if (one.tls !== undefined) {
    const actual = await handshake(one.tls, port);
    return [actual, r.error === undefined ? { alpn: r.alpn, version: r.version } : { refused: true }];
  }
  if (one.grpc !== undefined) {
    const actual = await call(one.grpc, port, encrypted);
    const expected = {
      status: STATUSES[String(r.status)],
      ...(r.message !== undefined && { message: r.message }),
      ...(r.dns !== undefined && { id: r.id, ...normal(r.dns) }),
    };
    return [actual, expected];
  }
  const actual = await fetchAnswer(one, port, encrypted);
  const headers = comparable(r.headers ?? {}, r.dns !== undefined);
  const expected = {
    status: r.status,
    headers,
    ...(r.body !== undefined && { body: r.body }),
    ...(r.dns !== undefined && { id: r.id, ...normal(r.dns) }),
  };
  return [actual, expected];
}

const STATUSES: Readonly<Record<string, number>> = {
  OK: 0,
  UNKNOWN: 2,
  RESOURCE_EXHAUSTED: 8,
  UNIMPLEMENTED: 12,
};

function octetsOf(text: string | null): Buffer | undefined {
  if (text === null) return undefined;
  const zeros = /^\{(\d+) zero bytes\}$/.exec(text)?.[1];
  return zeros === undefined ? Buffer.from(text, "hex") : Buffer.alloc(Number(zeros));
}

/** The compared parts of a message. The words are those of dnspython. */
function normal({ rcode, answer }: Dns): { readonly rcode: string; readonly answers: number } {
  return { rcode, answers: answer.length };
}

function shown(octets: Uint8Array): object {
  const message = decodeMessage(octets);
  const id = message.id.toString(16).padStart(4, "0");
  assert.ok(message.answer.every((record) => recordText(record) !== ""));
  return { id, rcode: rcodeName(message.rcode), answers: message.answer.length };
}

/** The parts that a client uses. A DNS message has another length here, because names in it are compressed. */
function comparable(headers: IncomingMessage["headers"], isDns: boolean): object {
  const { "cache-control": cacheControl, "content-type": contentType, "content-length": length } = headers;
  const sniffing = headers["x-content-type-options"];
  return { cacheControl, contentType, sniffing, ...(!isDns && { length }) };
}

async function handshake(
  { alpn, max_version: most }: NonNullable<Case["tls"]>,
  port: number,
): Promise<object> {
  const socket = connectTls({
    host: "127.0.0.1",
    port,
    ca: authority.certificate,
    minVersion: "TLSv1",
    ...(most && { maxVersion: most.replace("_", ".") as SecureVersion }),
    ...(alpn && { ALPNProtocols: [...alpn] }),
  });
  socket.on("error", () => undefined);
  try {
    await once(socket, "secureConnect");
    return { alpn: socket.alpnProtocol || null, version: socket.getProtocol() };
  } catch {
    return { refused: true };
  } finally {
    socket.destroy();
  }
}

async function fetchAnswer({ http }: Case, port: number, encrypted: boolean): Promise<object> {
  assert.ok(http !== undefined);
  const body = octetsOf(http.body);
  const at = http.args.indexOf("-X");
  const method =
    at >= 0 ? http.args[at + 1] : http.args.includes("-I") ? "HEAD" : body === undefined ? "GET" : "POST";
  const options = {
    host: "127.0.0.1",
    port,
    path: http.url,
    method,
    ca: authority.certificate,
    agent: false,
  };
  const request = encrypted ? requestTls(options) : requestPlain(options);
  for (const [index, word] of http.args.entries()) {
    const [name = "", value = ""] = word === "-H" ? (http.args[index + 1] ?? "").split(": ") : [];
    if (name !== "") request.setHeader(name, value);
  }
  request.on("error", () => undefined).end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const octets = Buffer.concat(chunks);
  const isDns = response.headers["content-type"] === "application/dns-message";
  const headers = comparable(response.headers, isDns);
  return { status: response.statusCode, headers, ...(isDns ? shown(octets) : { body: octets.toString() }) };
}

async function call(
  { method, msg }: NonNullable<Case["grpc"]>,
  port: number,
  encrypted: boolean,
): Promise<object> {
  const message = octetsOf(msg) ?? Buffer.alloc(0);
  const length: number[] = [];
  for (let rest = message.length; ; rest >>>= 7) {
    length.push(rest < 0x80 ? rest : (rest & 0x7f) | 0x80);
    if (rest < 0x80) break;
  }
  const packet = message.length === 0 ? message : Buffer.concat([Buffer.from([0x0a, ...length]), message]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(packet.length, 1);
  const session = connectHttp2(`${encrypted ? "https" : "http"}://127.0.0.1:${port}`, {
    ca: authority.certificate,
  });
  try {
    const stream = session.request({
      ":method": "POST",
      ":path": method,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const trailers: Record<string, unknown> = {};
    stream.on("response", (headers) => Object.assign(trailers, headers));
    stream.on("trailers", (headers) => Object.assign(trailers, headers));
    stream.end(Buffer.concat([prefix, packet]));
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    const status = Number(trailers["grpc-status"]);
    if (status !== 0) return { status, message: trailers["grpc-message"] };
    const octets = Buffer.concat(chunks);
    // Prefix, tag, and a length of one octet or more.
    let start = 6;
    while ((octets[start++] as number) >= 0x80);
    return { status, ...shown(octets.subarray(start)) };
  } finally {
    session.destroy();
  }
}
