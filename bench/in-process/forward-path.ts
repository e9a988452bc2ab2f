/**
 * What a forwarded query costs in our own code: from the receive buffer through the chain of a production Corefile to the upstream's send buffer, and from the
 * reply there to the one for the client. Only the kernel is left out, and Node's way to the first of a burst. Run with `node bench/in-process/forward-path.ts`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { registerHooks } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeMessage, encodeMessage, makeQuery, Name, RecordType } from "../../src/dns/index.ts";
import { writeClusterFiles } from "../material.ts";
import { externalName } from "../names.ts";

// Replaces `node:dgram`: sockets opened from here on make no system calls.
const stub = new URL("./stub-sockets.ts", import.meta.url).href;
registerHooks({
  resolve(specifier, context, nextResolve) {
    return specifier.endsWith("/linux-sockets.ts")
      ? { url: stub, shortCircuit: true }
      : nextResolve(specifier, context);
  },
});
const { clients, turn } = await import("./stub-sockets.ts");
const { startProductionServer } = await import("./production-server.ts");

const NAMES = 10_000;
/** Queries that come together, as under load. */
const BURST = Number(process.argv[2] ?? 16);
const ROUNDS = Number(process.argv[3] ?? 3_000);
/** Queries of a round: what is shorter is not worth a look at the clock. */
const ROUND = 1_024;
const WARM_UP = 500;

const folder = mkdtempSync(join(tmpdir(), "portolan-forward-path-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
const { server, log } = await startProductionServer({
  folder,
  upstreamPort: 5300,
  cacheEntries: 0,
  workload: "forward-path",
  cluster: writeClusterFiles(folder),
});

const packets = Array.from({ length: NAMES }, (_, index) =>
  encodeMessage(makeQuery({ name: Name.parse(externalName(index)), type: RecordType.A }, { id: index })),
);
let next = 0;

/** One burst: its queries come in one turn, and the replies in the next. */
function burst(): void {
  for (let query = 0; query < BURST; query++) {
    const packet = packets[next] as Uint8Array;
    next = next === NAMES - 1 ? 0 : next + 1;
    const message = clients.inbox.next();
    for (let at = 0; at < packet.length; at++) message.octets[at] = packet[at] as number;
    message.length = packet.length;
  }
  turn();
  turn();
}

const nanoseconds: number[] = [];
for (let round = 0; round < WARM_UP + ROUNDS; round++) {
  const before = clients.answered;
  let spent = 0;
  for (let asked = 0; asked < ROUND; asked += BURST) {
    const began = performance.now();
    burst();
    spent += performance.now() - began;
    // A turn of the event loop has its own time.
    if (asked % (4 * BURST) === 0) await new Promise((resolve) => process.nextTick(resolve));
  }
  const answered = clients.answered - before;
  if (answered < ROUND) throw new Error(`${answered} answers to ${ROUND} queries:\n${log.lines.join("\n")}`);
  if (round >= WARM_UP) nanoseconds.push((spent * 1e6) / answered);
  if (round % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
}
const { answer } = decodeMessage(clients.lastReply.octets.subarray(0, clients.lastReply.length));
if (answer.length !== 1) throw new Error(`a reply with ${answer.length} records`);
nanoseconds.sort((left, right) => left - right);
const at = (share: number): string => (nanoseconds[Math.floor(share * (ROUNDS - 1))] ?? 0).toFixed(0);
console.log(
  `ns a query, the stub's own work included: least ${at(0)}, tenth ${at(0.1)}, median ${at(0.5)}, in bursts of ${BURST}`,
);
await server.stop();
process.exit();
