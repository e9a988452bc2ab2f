/** The server behind `{{upstream}}`: answers by the script of a set, and records its queries. */
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { decodeMessage, encodeMessage, type Message } from "../../../src/dns/message.ts";
import type { ResourceRecord } from "../../../src/dns/record-kind.ts";
import { CNAME } from "../../../src/dns/record-table.ts";
import { parseRecord } from "../../../src/dns/resource-record.ts";
import { RecordType, recordTypeName } from "../../../src/dns/type-names.ts";
import { framed } from "../dns-client.ts";
import { freePort } from "../free-ports.ts";
import type { ScriptedReply, UpstreamScript, VectorQuery } from "./vector-set.ts";
import { queryText, recordText, scriptedMessage } from "./vector-text.ts";

const DENIAL = "upstream.test. 300 IN SOA ns.upstream.test. host.upstream.test. 1 7200 1800 86400 300";

export class ScriptedUpstream implements AsyncDisposable {
  readonly port: number;
  readonly #udp: UdpSocket = createSocket("udp4");
  readonly #tcp: Server;
  readonly #script: UpstreamScript;
  readonly #records: readonly ResourceRecord[];
  #seen: VectorQuery[] = [];

  private constructor(script: UpstreamScript, port: number) {
    this.#script = script;
    const lines = (script.records ?? "").split("\n").filter((line) => line.trim() !== "");
    this.#records = lines.map((line) => parseRecord(line));
    this.port = port;
    this.#udp.on("message", (octets, from) => {
      this.#udp.send(this.#answer(octets, "udp"), from.port, from.address, () => undefined);
    });
    this.#tcp = createServer((socket) => {
      let pending = Buffer.alloc(0);
      socket.on("error", () => undefined);
      socket.on("data", (data) => {
        pending = Buffer.concat([pending, data]);
        while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
          const end = 2 + pending.readUInt16BE(0);
          socket.write(framed(this.#answer(pending.subarray(2, end), "tcp")));
          pending = pending.subarray(end);
        }
      });
    });
    this.#tcp.unref();
  }

  static async start(script: UpstreamScript): Promise<ScriptedUpstream> {
    const upstream = new ScriptedUpstream(script, await freePort());
    const listening = [once(upstream.#udp, "listening"), once(upstream.#tcp, "listening")];
    upstream.#udp.bind(upstream.port, "127.0.0.1");
    upstream.#tcp.listen(upstream.port, "127.0.0.1");
    await Promise.all(listening);
    return upstream;
  }

  /** Its queries since the last call, without health checks. */
  takeSeen(): VectorQuery[] {
    const seen = this.#seen;
    this.#seen = [];
    return seen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#udp, "close");
    this.#udp.close();
    this.#tcp.close();
    await closed;
  }

  #answer(octets: Uint8Array, transport: "udp" | "tcp"): Uint8Array {
    const query = decodeMessage(octets);
    const seen = queryText(query, transport);
    if (!(seen.name === "." && seen.type === "NS")) this.#seen.push(seen);
    return encodeMessage(scriptedMessage(query, this.#reply(query)));
  }

  #reply(query: Message): ScriptedReply {
    const [question] = query.questions;
    if (question === undefined) return { rcode: "FORMERR" };
    const scripted =
      this.#script.replies?.[`${question.name.toLowerCase()} ${recordTypeName(question.type)}`];
    if (scripted !== undefined) return scripted;
    if (this.#script.echo === true) return {};

    const answer: ResourceRecord[] = [];
    let { name } = question;
    for (let step = 0; step < 16; step++) {
      const here = this.#records.filter((record) => record.name.equals(name));
      const isWanted = (record: ResourceRecord) =>
        question.type === RecordType.ANY || record.type === question.type;
      const found = here.filter(isWanted);
      if (found.length > 0) return { answer: [...answer, ...byType(found)].map(recordText) };
      const alias = here.find((record) => CNAME.is(record));
      if (alias === undefined) {
        const rcode = here.length > 0 ? "NOERROR" : "NXDOMAIN";
        return { rcode, answer: answer.map(recordText), authority: [DENIAL] };
      }
      answer.push(alias);
      name = alias.data.target;
    }
    return { answer: answer.map(recordText) };
  }
}

/** In the order of the file, those of one type together. */
function byType(records: readonly ResourceRecord[]): ResourceRecord[] {
  return [...Map.groupBy(records, ({ type }) => type).values()].flat();
}
