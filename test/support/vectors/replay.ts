/** Runs sets of vectors against this server, in this process: real sockets, and a clock that only the set moves. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { writeTree } from "../../../scripts/lib/test-tree.ts";
import { decodeMessage } from "../../../src/dns/message.ts";
import {
  ConfigurationError,
  type CreateServerOptions,
  createServer,
  type EmbeddedServer,
} from "../../../src/index.ts";
import { FakeClock } from "../../../src/lib/time/clock.ts";
import { framed } from "../dns-client.ts";
import { namedPorts } from "../free-ports.ts";
import { ScriptedUpstream } from "./scripted-upstream.ts";
import type { VectorAnswer, VectorCase, VectorQuery, VectorReply, VectorSet } from "./vector-set.ts";
import { answerText, completeAnswer, completeQuery, queryOf } from "./vector-text.ts";

/** A case that came out otherwise than recorded. */
export interface Deviation {
  /** "set 3": the third case of the set; the set alone where it does not start. */
  readonly case: string;
  readonly question: unknown;
  readonly expected: unknown;
  readonly actual: unknown;
}

/** Longer than any answer takes on a busy machine. */
const PATIENCE = 20_000;

/** How long nothing has to come after the server has answered something else on the same way. */
const SILENCE = 300;

/** A query of opcode STATUS: refused with NOTIMP before any plugin sees it. */
const PROBE = Buffer.from("ffff10000000000000000000", "hex");

/** Starts the server of a set, asks all its questions, and says what came out otherwise. */
export async function replay(set: VectorSet): Promise<Deviation[]> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-vectors-"));
  try {
    await using upstream =
      set.upstream === undefined ? undefined : await ScriptedUpstream.start(set.upstream);
    return await withServer(set, folder, upstream);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function withServer(
  set: VectorSet,
  folder: string,
  upstream: ScriptedUpstream | undefined,
): Promise<Deviation[]> {
  const portOf = await namedPorts();
  const fill = (text: string): string =>
    text
      .replaceAll(/\{\{(port\d?)\}\}/g, (_whole, name: string) => String(portOf(name)))
      .replaceAll("{{upstream}}", `127.0.0.1:${upstream?.port ?? portOf("upstream")}`)
      .replaceAll("{{dir}}", folder);
  const files = Object.entries(set.files ?? {}).map(([name, text]) => [name, fill(text)]);
  writeTree(folder, Object.fromEntries(files));
  for (const [name, text] of Object.entries(set.files_base64 ?? {})) {
    writeFileSync(join(folder, name), Buffer.from(text, "base64"));
  }
  const clock = new FakeClock();
  const options = { corefile: fill(set.corefile), file: join(folder, "Corefile"), clock };
  await using server = await created(options);
  const refusal = server instanceof Refusal ? server.reason : await refusalOf(server);
  if (set.config !== undefined) {
    const { starts } = set.config;
    if (starts === (refusal === undefined)) return [];
    return [{ case: set.id, question: set.corefile, expected: { starts }, actual: refusal ?? "starts" }];
  }
  if (refusal !== undefined) {
    return [{ case: set.id, question: set.corefile, expected: "starts", actual: refusal }];
  }
  await using client = new VectorClient(portOf("port"));
  const deviations: Deviation[] = [];
  for (const [index, asked] of (set.cases ?? []).entries()) {
    const deviation = await runCase(asked, client, upstream, clock);
    if (deviation !== undefined) deviations.push({ case: `${set.id} ${index + 1}`, ...deviation });
  }
  return deviations;
}

/** A Corefile that is no configuration. */
class Refusal implements AsyncDisposable {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // There is nothing to stop.
  }
}

async function created(options: CreateServerOptions): Promise<EmbeddedServer | Refusal> {
  try {
    return await createServer(options);
  } catch (error) {
    if (error instanceof ConfigurationError) return new Refusal(error.message);
    throw error;
  }
}

/** Starts the server. @returns why it does not start */
async function refusalOf(server: EmbeddedServer): Promise<string | undefined> {
  try {
    await server.start();
    return undefined;
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    if (error instanceof Error) return `${error.name}: ${error.message}`;
    throw error;
  }
}

async function runCase(
  { query, replies, repeat = 1, gap_ms = 0, wait_ms = 0, ttl_counts_down = false }: VectorCase,
  client: VectorClient,
  upstream: ScriptedUpstream | undefined,
  clock: FakeClock,
): Promise<Omit<Deviation, "case"> | undefined> {
  await clock.settle(wait_ms);
  for (let round = 0; round < repeat; round++) {
    if (round > 0) await clock.settle(gap_ms);
    const reply = replies[round] ?? replies.at(-1) ?? "none";
    const expectsSilence = typeof reply === "string" || "none" in reply;
    const { octets, port } = await client.exchange(query, expectsSilence);
    if (query.header_only === true) return undefined;
    const expected = withPort(expectation(reply), port);
    const seen = upstream?.takeSeen() ?? [];
    const actual = octets === undefined ? { none: true } : readAnswer(octets);
    const whole = { ...actual, ...(expected.upstream_saw !== undefined && { upstream_saw: seen }) };
    const isSame = isDeepStrictEqual(whole, expected) || (ttl_counts_down && isNearlySame(whole, expected));
    if (!isSame) return { question: query, expected, actual: whole };
  }
  return undefined;
}

type Expectation = { readonly upstream_saw?: readonly VectorQuery[] } & (
  | VectorAnswer
  | { readonly none: true }
  | { readonly unparsed: string }
);

function expectation(reply: VectorReply): Expectation {
  if (typeof reply === "string") return { none: true };
  // This project may read messages that the recording's client could not.
  if ("unparsed" in reply) return readAnswer(Buffer.from(reply.unparsed, "hex"));
  const saw = reply.upstream_saw === undefined ? {} : { upstream_saw: reply.upstream_saw.map(completeQuery) };
  return "none" in reply ? { none: true, ...saw } : { ...completeAnswer(reply), ...saw };
}

function readAnswer(octets: Uint8Array): VectorAnswer | { readonly unparsed: string } {
  try {
    return answerText(decodeMessage(octets));
  } catch {
    return { unparsed: Buffer.from(octets).toString("hex") };
  }
}

/** `{{client_port}}` is the port that the question came from. */
function withPort(expected: Expectation, port: number): Expectation {
  return JSON.parse(JSON.stringify(expected).replaceAll("{{client_port}}", String(port)));
}

/** True where only TTLs differ, and none by more than a second. */
function isNearlySame(one: object, other: object): boolean {
  const ttl = /(?<=^\S+ )\d+(?= )/;
  const split = (value: object) => {
    const ttls: number[] = [];
    const shape = JSON.stringify(value, (_key, text) => {
      if (typeof text !== "string" || !ttl.test(text)) return text;
      ttls.push(Number(ttl.exec(text)?.[0]));
      return text.replace(ttl, "TTL");
    });
    return { ttls, shape };
  };
  const [left, right] = [split(one), split(other)];
  return (
    left.shape === right.shape && left.ttls.every((ttl, at) => Math.abs(ttl - (right.ttls[at] ?? 0)) <= 1)
  );
}

interface Exchange {
  readonly octets: Uint8Array | undefined;
  readonly port: number;
}

/** Sends the queries of one set from the addresses and sockets that they name. */
class VectorClient implements AsyncDisposable {
  readonly #serverPort: number;
  readonly #shared = new Map<string, UdpSocket>();

  constructor(serverPort: number) {
    this.#serverPort = serverPort;
  }

  async exchange(query: VectorQuery, expectsSilence: boolean): Promise<Exchange> {
    const client = query.client ?? "127.0.0.1";
    const prefix = Buffer.from(query.proxy?.hex ?? "", "hex");
    const message = query.header_only === true ? Buffer.alloc(0) : queryOf(query);
    if (query.transport === "tcp") return this.#overTcp(client, prefix, message, expectsSilence);
    const socket = await this.#socketOf(client, query.socket);
    try {
      const octets = Buffer.concat([prefix, message]);
      const reply = await this.#overUdp(socket, octets, expectsSilence || message.length === 0);
      return { octets: reply, port: socket.address().port };
    } finally {
      if (query.socket === undefined) await close(socket);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#shared.values()].map(close));
  }

  async #socketOf(address: string, word: string | undefined): Promise<UdpSocket> {
    const known = word === undefined ? undefined : this.#shared.get(word);
    if (known !== undefined) return known;
    const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
    const listening = once(socket, "listening");
    socket.bind({ address });
    await listening;
    socket.on("error", () => undefined);
    if (word !== undefined) this.#shared.set(word, socket);
    return socket;
  }

  #overUdp(socket: UdpSocket, octets: Uint8Array, expectsSilence: boolean): Promise<Uint8Array | undefined> {
    const host = serverHost(socket.address().address);
    const { promise, resolve } = Promise.withResolvers<Uint8Array | undefined>();
    let timer = setTimeout(resolve, PATIENCE, undefined);
    const onMessage = (reply: Buffer) => {
      if (reply.readUInt16BE(0) !== 0xffff) return resolve(reply);
      clearTimeout(timer);
      timer = setTimeout(resolve, SILENCE, undefined);
    };
    socket.on("message", onMessage);
    socket.send(octets, this.#serverPort, host, () => {
      if (expectsSilence) socket.send(PROBE, this.#serverPort, host, () => undefined);
    });
    return promise.finally(() => {
      clearTimeout(timer);
      socket.off("message", onMessage);
    });
  }

  async #overTcp(
    client: string,
    prefix: Uint8Array,
    message: Uint8Array,
    expectsSilence: boolean,
  ): Promise<Exchange> {
    const socket = connect({ port: this.#serverPort, host: serverHost(client), localAddress: client });
    const { promise, resolve } = Promise.withResolvers<Uint8Array | undefined>();
    let pending = Buffer.alloc(0);
    socket.on("data", (data) => {
      pending = Buffer.concat([pending, data]);
      if (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        resolve(pending.subarray(2, 2 + pending.readUInt16BE(0)));
      }
    });
    socket.on("error", () => resolve(undefined));
    socket.once("close", () => resolve(undefined));
    const timer = setTimeout(resolve, expectsSilence ? SILENCE : PATIENCE, undefined);
    await once(socket, "connect");
    const port = socket.localPort ?? 0;
    socket.write(Buffer.concat([prefix, framed(message)]));
    const octets = await promise;
    clearTimeout(timer);
    socket.destroy();
    return { octets, port };
  }
}

function serverHost(client: string): string {
  return client.includes(":") ? "::1" : "127.0.0.1";
}

async function close(socket: UdpSocket): Promise<void> {
  const closed = once(socket, "close");
  socket.close();
  await closed;
}
