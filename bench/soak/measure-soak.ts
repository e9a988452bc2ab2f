/** Portolan with the usual Corefile beside a live cluster, under floods. */
import { type ChildProcess, fork } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ClusterSize } from "../cluster/cluster-shape.ts";
import { LiveServer, startApi } from "../cluster/live-server.ts";
import { forgetPeak, processMemory } from "../cluster/process-memory.ts";
import type { ControlGroup } from "../memory/control-group.ts";
import { externalName } from "../names.ts";
import { encodeQuery } from "../run/ask.ts";
import type { FloodCounts, FloodOrder } from "./flood.ts";
import { FLOODS, type FloodKind } from "./flood-queries.ts";
import type { FloodSample, SoakRun } from "./soak-results.ts";

export interface SoakOptions {
  readonly threads: number;
  readonly minutes: number;
  /** Seconds of each flood. */
  readonly seconds: number;
  readonly size: ClusterSize;
  readonly folder: string;
  /** The memory limit of the server, if any. */
  readonly group?: ControlGroup | undefined;
  readonly say: (line: string) => void;
}

/** Services, EndpointSlices, namespaces. */
const KINDS = 3;
/** Seconds until memory is read, when nothing is asked. */
const REST = 30;

/** @throws Error where the server ends */
export async function measureSoak(options: SoakOptions): Promise<SoakRun> {
  const { threads, minutes, seconds, size, folder, group, say } = options;
  await using upstream = await FloodUpstream.start();
  await using liveApi = await startApi(size, true);
  const live = await LiveServer.prepare(join(folder, `soak-${threads}`), liveApi, {
    upstreamPort: upstream.port,
    cache: true,
    pods: false,
    directives: [`multisocket ${threads}`],
    group,
  });
  const listed = liveApi.api.listed(KINDS);
  await using server = live.start();
  await live.becomesReady(server);
  await listed;
  await delay(REST * 1000);
  const restMegabytes = processMemory(server.pid).resident;
  say(`    at rest ${restMegabytes.toFixed(0)} MB`);
  const samples = new Map<FloodKind, FloodSample>();
  const rounds = Math.max(1, Math.round((minutes * 60) / (FLOODS.length * seconds)));
  for (let round = 1; round <= rounds; round++)
    for (const flood of FLOODS) {
      forgetPeak(server.pid);
      const client = await Client.start(server.port);
      const before = await upstream.inUse();
      const order = {
        kind: flood,
        port: server.port,
        seconds,
        seed: round * FLOODS.length + FLOODS.indexOf(flood),
      };
      const counts = await floodInProcess(order);
      server.assertRunning();
      const forwarded = (await upstream.inUse()) - before;
      const { asked, lost } = await client.stop();
      const { peak, resident } = processMemory(server.pid);
      samples.set(
        flood,
        added(samples.get(flood) ?? NONE, { ...counts, flood, asked, lost, forwarded, peak }),
      );
      say(
        `    round ${round} of ${rounds}, ${flood}: ${counts.sent} sent, ${counts.answered} answered, ` +
          `${peak.toFixed(0)} MB at most, ${resident.toFixed(0)} MB after; of ${asked} for names in use ${lost} lost, ${forwarded} forwarded${group === undefined ? "" : `; limit reached ${group.events.reclaims} times, ${group.events.kills} killed`}`,
      );
    }
  await delay(REST * 1000);
  server.assertRunning();
  const endMegabytes = processMemory(server.pid).resident;
  say(`    half a minute later ${endMegabytes.toFixed(0)} MB`);
  return { threads, restMegabytes, endMegabytes, floods: [...samples.values()] };
}

const NONE = { sent: 0, answered: 0, peakMegabytes: [] as number[], asked: 0, lost: 0, forwarded: 0 };

function added(
  all: Omit<FloodSample, "flood">,
  one: Omit<FloodSample, "peakMegabytes"> & { readonly peak: number },
): FloodSample {
  return {
    flood: one.flood,
    sent: all.sent + one.sent,
    answered: all.answered + one.answered,
    peakMegabytes: [...all.peakMegabytes, one.peak],
    asked: all.asked + one.asked,
    lost: all.lost + one.lost,
    forwarded: all.forwarded + one.forwarded,
  };
}

async function floodInProcess(order: FloodOrder): Promise<FloodCounts> {
  const child = fork(program("flood-process.ts"), [JSON.stringify(order)], { stdio: "inherit" });
  const gone = once(child, "exit").then(() => {
    throw new Error("the flood ended early");
  });
  const [counts] = await Promise.race([once(child, "message"), gone]);
  gone.catch(() => undefined);
  return counts as FloodCounts;
}

function program(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}

class FloodUpstream implements AsyncDisposable {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(): Promise<FloodUpstream> {
    const child = fork(program("flood-upstream-process.ts"), { stdio: "inherit" });
    process.once("exit", () => child.kill());
    const [port] = await once(child, "message");
    return new FloodUpstream(child, port as number);
  }

  /** How often it was asked for names in use. */
  async inUse(): Promise<number> {
    const answered = once(this.#child, "message");
    this.#child.send("");
    const [count] = await answered;
    return count as number;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, "exit");
    this.#child.kill();
    await ended;
  }
}

/** Names that it asks for all the time. */
const NAMES_IN_USE = 100;
/** Milliseconds between two of its queries. */
const PAUSE = 10;
/** Milliseconds after which a query is lost. */
const PATIENCE = 1_000;

/** A well-behaved client. */
class Client {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, number>();
  readonly #queries = Array.from({ length: NAMES_IN_USE }, (_, index) =>
    encodeQuery({ name: externalName(index), type: "A" }),
  );
  readonly #timer: NodeJS.Timeout;
  #asked = 0;
  #answered = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("error", () => undefined);
    socket.on("message", (reply) => {
      const id = reply.readUInt16BE(0);
      const sentAt = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (sentAt !== undefined && performance.now() - sentAt < PATIENCE) this.#answered++;
    });
    this.#timer = setInterval(() => this.#ask(), PAUSE);
  }

  static async start(port: number): Promise<Client> {
    const socket = createSocket("udp4");
    socket.connect(port, "127.0.0.1");
    await once(socket, "connect");
    return new Client(socket);
  }

  async stop(): Promise<{ readonly asked: number; readonly lost: number }> {
    clearInterval(this.#timer);
    await delay(PATIENCE);
    this.#socket.close();
    return { asked: this.#asked, lost: this.#asked - this.#answered };
  }

  #ask(): void {
    const query = Buffer.from(this.#queries[this.#asked % NAMES_IN_USE] ?? []);
    const id = this.#asked % 0x1_0000;
    query.writeUInt16BE(id, 0);
    this.#waiting.set(id, performance.now());
    this.#asked++;
    this.#socket.send(query);
  }
}
