import { createSocket } from "node:dgram";

/**
 * A question to ask a DNS server, and where.
 * @typedef {{ address: string, port: number, name: string, type: number }} Question
 */

/** RFC 1035 section 3.2.2 and RFC 3596; the types that one tries by hand. */
const TYPES = new Map([
  ["A", 1],
  ["NS", 2],
  ["CNAME", 5],
  ["SOA", 6],
  ["PTR", 12],
  ["MX", 15],
  ["TXT", 16],
  ["AAAA", 28],
  ["SRV", 33],
]);

/**
 * Asks until the server answers with NOERROR or NXDOMAIN: a server that still starts may send SERVFAIL.
 * @param {Question} question
 * @param {AbortSignal} signal ends the wait
 * @returns {Promise<boolean>} false where the wait was ended
 */
export function waitForAnswer(question, signal) {
  const socket = createSocket(question.address.includes(":") ? "udp6" : "udp4");
  const id = Math.floor(Math.random() * 0x10000);
  const query = encodeQuery(id, question);
  const ask = () => socket.send(query, question.port, question.address, ignore);
  return new Promise((resolve) => {
    const asking = setInterval(ask, 100);
    /** @param {boolean} answered */
    const finish = (answered) => {
      clearInterval(asking);
      signal.removeEventListener("abort", giveUp);
      socket.close();
      resolve(answered);
    };
    const giveUp = () => finish(false);
    signal.addEventListener("abort", giveUp);
    socket.on("error", ignore);
    socket.on("message", (reply) => {
      if (isAnswer(reply, id)) finish(true);
    });
    ask();
  });
}

/** Until the server listens, a query may fail; the next try follows. */
function ignore() {
  return undefined;
}

/**
 * What a `dig` command line asks.
 * @param {string} command such as "dig @127.0.0.1 -p 1053 +short web.shop.svc.cluster.local A"
 * @returns {Question | undefined} undefined where it is not a dig command that this reader understands
 */
export function questionOf(command) {
  const [program, ...words] = command.trim().split(/\s+/);
  const question = { address: "127.0.0.1", port: 53, name: "", type: 1 };
  if (program !== "dig") return undefined;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word === "-p") question.port = Number(words[++at]);
    else if (word === "-x") {
      question.name = `${(words[++at] ?? "").split(".").reverse().join(".")}.in-addr.arpa`;
      question.type = 12;
    } else if (word === "-t") question.type = TYPES.get((words[++at] ?? "").toUpperCase()) ?? 0;
    else if (word.startsWith("@")) question.address = word.slice(1);
    else if (TYPES.has(word.toUpperCase())) question.type = TYPES.get(word.toUpperCase()) ?? 0;
    else if (!/^[+-]/.test(word) && question.name === "") question.name = word;
  }
  const { name, port, type } = question;
  return name !== "" && Number.isInteger(port) && type > 0 ? question : undefined;
}

/**
 * A query for one question with recursion desired, RFC 1035 section 4.1.
 * @param {number} id
 * @param {{ name: string, type: number }} question
 */
export function encodeQuery(id, { name, type }) {
  const labels = name.split(".").filter((label) => label !== "");
  const header = Buffer.from([id >> 8, id & 0xff, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  const wireLabels = labels.map((label) => Buffer.from(String.fromCharCode(label.length) + label, "latin1"));
  return Buffer.concat([header, ...wireLabels, Buffer.from([0, type >> 8, type & 0xff, 0, 1])]);
}

/**
 * @param {Buffer} reply
 * @param {number} id
 */
function isAnswer(reply, id) {
  if (reply.length < 12 || reply.readUInt16BE(0) !== id) return false;
  const flags = reply.readUInt16BE(2);
  const isResponse = (flags & 0x8000) !== 0;
  const rcode = flags & 0xf;
  return isResponse && (rcode === 0 || rcode === 3);
}
