/**
 * Sends queries for one name at a steady rate, each once, and counts the answers: `node steady-client.ts ADDRESS PORT NAME COUNT INTERVAL`, with
 * the interval in milliseconds. Prints `SENT ANSWERED TRUNCATED` and ends.
 */
import { createSocket } from "node:dgram";
import { readU16, writeU16 } from "../../src/dns/octets.ts";
import { queryOctets } from "./dns-client.ts";

/** For the last answers. */
const PATIENCE = 5_000;
const TRUNCATED = 0x0200;

const [address, port, name = "", count, interval] = process.argv.slice(2);
const total = Number(count);
const answered = new Set<number>();
let truncated = 0;
let sent = 0;
const socket = createSocket("udp4");

function finish(): void {
  process.stdout.write(`${sent} ${answered.size} ${truncated}\n`);
  socket.close();
}

socket.on("message", (octets) => {
  if ((readU16(octets, 2) & TRUNCATED) !== 0) truncated++;
  answered.add(readU16(octets, 0));
  if (sent === total && answered.size === total) finishOnce();
});
socket.on("error", () => undefined);

let ended = false;
function finishOnce(): void {
  if (ended) return;
  ended = true;
  finish();
}

socket.connect(Number(port), address, () => {
  const timer = setInterval(() => {
    const query = queryOctets(name);
    writeU16(query, 0, sent);
    socket.send(query);
    sent++;
    if (sent < total) return;
    clearInterval(timer);
    setTimeout(finishOnce, PATIENCE).unref();
    if (answered.size === total) finishOnce();
  }, Number(interval));
});
