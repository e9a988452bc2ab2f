/**
 * Sends queries to a port as fast as the system takes them, and reads no answer: `node udp-flood-sender.ts PORT KIND [ADDRESS]`.
 * At SIGTERM, or after a minute, it prints how many it sent and ends.
 */
import { createSocket } from "node:dgram";
import { constants, setPriority } from "node:os";
import { queryOctets } from "./dns-client.ts";
import type { FloodKind } from "./udp-flood.ts";

/** Datagrams between two looks at the event loop. */
const BURST = 64;
const LONGEST_MS = 60_000;
/** Where the name of a query begins: behind the header and the length of the first label. */
const FIRST_LABEL = 13;

const [port, kind, address = "127.0.0.1"] = process.argv.slice(2);

/** The contents of the n-th datagram. */
const KINDS: Readonly<Record<FloodKind, readonly Uint8Array[]>> = {
  answerable: ["www.example.com.", "web.shop.svc.cluster.local.", "none.shop.svc.cluster.local."].map(
    (name) => queryOctets(name),
  ),
  rubbish: [Buffer.alloc(3), Buffer.alloc(40, 0x2a), queryOctets("www.example.com.").subarray(0, 20)],
  // The label of zeros becomes another one in each query.
  unknown: [queryOctets("00000000-00000000.flood.example.")],
};

const templates = KINDS[kind === "rubbish" || kind === "unknown" ? kind : "answerable"];
const buffers = Array.from({ length: BURST }, (_, n) => Buffer.from(templates[n % templates.length] ?? []));
const ownDigits = process.pid.toString(16).padStart(8, "0");
const socket = createSocket("udp4");
let sent = 0;

function finish(): void {
  process.stdout.write(`${sent}\n`);
  socket.close();
}

function burst(): void {
  for (const buffer of buffers) {
    if (kind === "unknown")
      buffer.write(`${ownDigits}-${sent.toString(16).padStart(8, "0")}`, FIRST_LABEL, "latin1");
    socket.send(buffer);
    sent++;
  }
}

// As fast as the machine has nothing better to do: tests that run beside this one are not to suffer.
setPriority(constants.priority.PRIORITY_LOW);

// Refused and dropped datagrams are a part of any flood.
socket.on("error", () => undefined);
socket.connect(Number(port), address, () => {
  const end = setTimeout(finishOnce, LONGEST_MS);
  let ended = false;
  function finishOnce(): void {
    if (ended) return;
    ended = true;
    clearTimeout(end);
    finish();
  }
  process.once("SIGTERM", finishOnce);
  const next = (): void => {
    if (ended) return;
    // Waits until the system has taken the previous datagrams.
    if (socket.getSendQueueCount() === 0) burst();
    setImmediate(next);
  };
  next();
});
