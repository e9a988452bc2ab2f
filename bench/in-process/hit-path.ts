/**
 * What a query costs in our own code: from the receive buffer to the reply written into the send buffer, through a real
 * listener and the whole chain of a production Corefile. Only the socket is left out. Run with `node bench/in-process/hit-path.ts`.
 */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bench, do_not_optimize, run } from "mitata";
import {
  A,
  decodeMessage,
  encodeMessage,
  Flag,
  makeQuery,
  Name,
  Rcode,
  RecordType,
  rcodeName,
} from "../../src/dns/index.ts";
import type { Server } from "../../src/server/server.ts";
import type { MessageReceiver } from "../../src/transports/transport.ts";
import { type ClusterFiles, writeClusterFiles } from "../material.ts";
import { CLUSTER_SERVICES, externalName, SEARCH_PATH } from "../names.ts";
import { startProductionServer } from "./production-server.ts";
import { StubPort } from "./stub-port.ts";

const NAMES = 1_000;
/** Of a message and the reply that is written over it. */
const SLOT_OCTETS = 512;
/** Queries that come together, as under load. */
const BATCH = 16;
/** The address of the client, behind family and port. */
const NAMES_OF_CLIENTS = new Int32Array(8);
/** Room for the names of all paths. */
const CACHE_ENTRIES = 20 * NAMES;
/** More than any client sends. */
const LIMIT = "limit {\n        all 1000000\n    }";

const folder = mkdtempSync(join(tmpdir(), "portolan-hit-path-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
const upstream = await startUpstream();
const cluster = writeClusterFiles(folder);
const cached = await startServer(cluster, CACHE_ENTRIES);
const uncached = await startServer(cluster, 0);
const limited = await startServer(cluster, CACHE_ENTRIES, [LIMIT]);

const [searchSuffix = ""] = SEARCH_PATH;
const external = names((index) => externalName(index));
const services = names((index) => CLUSTER_SERVICES[index]?.domain ?? "");
await benchPath(
  "cached, one address",
  cached,
  names((index) => `one.${externalName(index)}`),
  1,
);
await benchPath(
  "cached, one address, behind limit",
  limited,
  names((index) => `one.${externalName(index)}`),
  1,
);
await benchPath(
  "cached, three addresses in rotation",
  cached,
  names((index) => `three.${externalName(index)}`),
  3,
);
await benchPath(
  "cached, no such name",
  cached,
  external.map((name) => `${name}.${searchSuffix}`),
  0,
);
await benchPath("cluster name, cached", cached, services, 1);
await benchPath("cluster name, no cache", uncached, services, 1);

await run();
await cached.server.stop();
await uncached.server.stop();
await limited.server.stop();
upstream.close();

interface Running {
  readonly server: Server;
  readonly receiver: MessageReceiver;
}

function names(make: (index: number) => string): string[] {
  return Array.from({ length: NAMES }, (_, index) => make(index));
}

/** Asks each name once, so that the cache has it, looks at the answers, and then measures. */
async function benchPath(
  title: string,
  { receiver }: Running,
  all: readonly string[],
  addresses: number,
): Promise<void> {
  const port = new StubPort();
  const packets = all.map((name, id) =>
    encodeMessage(makeQuery({ name: Name.parse(name), type: RecordType.A }, { id })),
  );
  for (const packet of packets) {
    const before = port.sent;
    receiver.receive(packet, packet.length, port);
    while (port.sent === before && port.dropped === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  for (const packet of packets) checkHit(title, receiver, packet, addresses);
  // The messages in slots of one memory, as a batch of datagrams has them.
  const words = new Int32Array((SLOT_OCTETS * NAMES) / 4);
  const memory = new Uint8Array(words.buffer);
  const slots = packets.map((_, index) => memory.subarray(index * SLOT_OCTETS, (index + 1) * SLOT_OCTETS));
  let index = 0;
  let again = 0;
  bench(title, () => {
    index = index === NAMES - 1 ? 0 : index + 1;
    const packet = packets[index] ?? NOTHING;
    const slot = slots[index] ?? NOTHING;
    slot.set(packet);
    // The first of a batch is stamped with the time.
    const together = index % BATCH > 0;
    const size =
      receiver.repeat?.(words, (index * SLOT_OCTETS) / 4, packet.length, 4, together, NAMES_OF_CLIENTS, 1) ??
      0;
    if (size === 0) receiver.receive(slot, packet.length, port, true);
    else again++;
    do_not_optimize(again + port.sent);
  });
}

/** @throws Error where the answer does not come at once, or is not what it should be */
function checkHit(title: string, receiver: MessageReceiver, packet: Uint8Array, addresses: number): void {
  const port = new StubPort();
  receiver.receive(packet, packet.length, port);
  if (port.sent !== 1) throw new Error(`${title}: the answer did not come at once`);
  const { rcode, answer } = decodeMessage(port.reply);
  if (rcode === (addresses === 0 ? Rcode.NXDOMAIN : Rcode.NOERROR) && answer.length === addresses) return;
  throw new Error(`${title}: ${rcodeName(rcode)} with ${answer.length} records`);
}

async function startServer(
  files: ClusterFiles,
  cacheEntries: number,
  directives: readonly string[] = [],
): Promise<Running> {
  const { server, log } = await startProductionServer({
    folder,
    upstreamPort: upstream.address().port,
    cacheEntries,
    directives,
    workload: "hit-path",
    cluster: files,
  });
  const [address] = server.addresses;
  const listener = address && server.listener(address.label);
  if (listener === undefined) throw new Error(`the server does not listen:\n${log.lines.join("\n")}`);
  return { server, receiver: listener.receiver("udp") };
}

/** Answers with three addresses for names that begin with `three.`, else with one. */
async function startUpstream() {
  const socket = createSocket("udp4");
  socket.on("message", (packet, { port, address }) => {
    const query = decodeMessage(packet);
    const [question] = query.questions;
    if (question === undefined) return;
    const count = question.name.labelText(0) === "three" ? 3 : 1;
    const answer = Array.from({ length: count }, (_, index) =>
      A.create(question.name, 3600, { address: `192.0.2.${index + 1}` }),
    );
    socket.send(encodeMessage({ ...query, flags: query.flags | Flag.QR | Flag.RA, answer }), port, address);
  });
  const listening = once(socket, "listening");
  socket.bind(0, "127.0.0.1");
  await listening;
  return socket;
}

const NOTHING = new Uint8Array(0);
