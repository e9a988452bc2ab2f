/** Portolan with a console whose stream has a reader, under as many queries as it answers. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import type { MachineView, NowView, QueryRow } from "../../src/console/api-types.ts";
import { freePort } from "../../test/support/free-ports.ts";
import { processMemory } from "../cluster/process-memory.ts";
import type { ClusterFiles, QueryFiles } from "../material.ts";
import { checkAnswers } from "../run/check-answers.ts";
import { onLoadCore } from "../run/cores.ts";
import { runCapacityLoad, runFill } from "../run/load.ts";
import { RunningServer } from "../run/running-server.ts";
import { PORTOLAN, portolanCommand } from "../servers/portolan.ts";
import type { Workload } from "../workloads.ts";
import type { FollowedRows, StreamSample } from "./console-results.ts";

export interface StreamOptions {
  readonly workload: Workload;
  readonly queries: QueryFiles;
  readonly cluster: ClusterFiles;
  readonly upstreamPort: number;
  readonly folder: string;
  readonly threads: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** Milliseconds after which the console has looked at the last query, and counted: it does so four times a second, and once. */
const SETTLING = 3_000;

/** @throws Error where the server cannot be measured */
export async function measureStream(options: StreamOptions): Promise<StreamSample> {
  const { workload, queries, cluster, upstreamPort, threads, warmUpSeconds, seconds } = options;
  const consolePort = await freePort();
  const address = `127.0.0.1:${consolePort}`;
  const metricsPort = await freePort();
  await using server = RunningServer.start(PORTOLAN, {
    ...{ folder: join(options.folder, "server"), port: await freePort(), metricsPort },
    ...{ upstreamPort, cacheEntries: workload.cacheEntries, workload: workload.name, cluster },
    directives: [`console ${address}`, ...(threads > 1 ? [`multisocket ${threads}`] : [])],
  });
  await checkAnswers(server, workload);
  await runFill(server.port, queries.fill);
  const follower = await Follower.start(address);
  const tail = await Tail.start(address);
  const abandoned = await abandonedStream(consolePort);
  try {
    await runCapacityLoad(workload.load, server.port, queries["warm-up"], warmUpSeconds);
    await delay(SETTLING);
    const place = { address, metricsPort };
    const before = await readCounts(place);
    const [followedBefore, tailedBefore] = [follower.rows, tail.rows];
    const megabytes = [processMemory(server.pid).resident];
    const timer = setInterval(() => megabytes.push(processMemory(server.pid).resident), 1_000);
    const { result } = await runCapacityLoad(workload.load, server.port, queries.capacity, seconds).finally(
      () => clearInterval(timer),
    );
    await delay(SETTLING);
    const after = await readCounts(place);
    megabytes.push(processMemory(server.pid).resident);
    server.assertRunning();
    return {
      threads,
      seconds: result.seconds,
      queriesPerSecond: result.answered / result.seconds,
      sent: result.sent,
      answered: result.answered,
      finished: after.finished - before.finished,
      told: after.told - before.told,
      missed: after.missed - before.missed,
      megabytes,
      followed: since(follower.rows, followedBefore),
      tailed: since(tail.rows, tailedBefore),
      droppedRows: after.droppedRows - before.droppedRows,
    };
  } finally {
    follower.stop();
    await tail.stop();
    abandoned.destroy();
  }
}

function since(now: FollowedRows, before: FollowedRows): FollowedRows {
  return { rows: now.rows - before.rows, leftOut: now.leftOut - before.leftOut };
}

interface Counts {
  readonly finished: number;
  readonly told: number;
  readonly missed: number;
  readonly droppedRows: number;
}

interface Place {
  /** Of the console. */
  readonly address: string;
  readonly metricsPort: number;
}

async function readCounts({ address, metricsPort }: Place): Promise<Counts> {
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`http://${address}/api/v1/${path}`);
    return response.json() as Promise<T>;
  };
  const { finished } = await get<MachineView>("machine");
  const { history, sampling } = await get<NowView>("now");
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const dropped = /^portolan_console_dropped_rows_total (\S+)$/m.exec(metrics)?.[1];
  return {
    finished,
    told: history.points.reduce((sum, { queries }) => sum + queries, 0),
    missed: sampling.missed,
    droppedRows: Number(dropped ?? 0),
  };
}

/** Reads the events as the page does. */
class Follower {
  #rows = 0;
  #leftOut = 0;
  readonly #ending = new AbortController();

  static async start(address: string): Promise<Follower> {
    const follower = new Follower();
    const { signal } = follower.#ending;
    const { body } = await fetch(`http://${address}/api/v1/events?streams=now,queries`, { signal });
    if (body === null) throw new Error("no events");
    follower.#read(body).catch(() => undefined);
    return follower;
  }

  get rows(): FollowedRows {
    return { rows: this.#rows, leftOut: this.#leftOut };
  }

  stop(): void {
    this.#ending.abort();
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      const events = text.split("\n\n");
      text = events.pop() ?? "";
      for (const event of events) {
        const data = /^event: queries\ndata: (.*)$/.exec(event)?.[1];
        if (data === undefined) continue;
        const { rows, leftOut }: { rows: readonly QueryRow[]; leftOut: number } = JSON.parse(data);
        this.#rows += rows.length;
        this.#leftOut += leftOut;
      }
    }
  }
}

/** `portolan tail -json` in a process of its own. */
class Tail {
  readonly #child: ChildProcess;
  #rows = 0;
  #leftOut = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(address: string): Promise<Tail> {
    const { command, args } = portolanCommand("");
    const [launcher = ""] = args;
    const [pinned, ...words] = onLoadCore(command, [launcher, "tail", "-json", "-server", address]);
    const child = spawn(pinned, words, { stdio: ["ignore", "pipe", "pipe"] });
    const tail = new Tail(child);
    createInterface({ input: child.stdout }).on("line", () => tail.#rows++);
    createInterface({ input: child.stderr }).on("line", (line) => {
      tail.#leftOut += Number(/^(\d+) more were left out/.exec(line)?.[1] ?? 0);
    });
    await once(child, "spawn");
    return tail;
  }

  get rows(): FollowedRows {
    return { rows: this.#rows, leftOut: this.#leftOut };
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, "exit");
    if (this.#child.exitCode === null && this.#child.kill("SIGTERM")) await ended;
  }
}

/** Requests the events and reads nothing. */
async function abandonedStream(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.pause();
  socket.on("error", () => undefined);
  socket.write("GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  return socket;
}
