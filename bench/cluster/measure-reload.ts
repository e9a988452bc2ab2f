/** A reload of a changed Corefile while a client queries: the memory it takes, and the longest wait for an answer. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { encodeMessage, makeQuery } from "../../src/dns/message.ts";
import { Name } from "../../src/dns/name.ts";
import { RecordType } from "../../src/dns/type-names.ts";
import type { RunningServer } from "../run/running-server.ts";
import type { ReloadSample } from "./cluster-results.ts";
import { forgetPeak, OwnPeak, processMemory } from "./process-memory.ts";

export interface ReloadOptions {
  readonly server: RunningServer;
  readonly corefile: string;
  /** Asked for without pause. */
  readonly name: string;
  /** Seconds from the reload until memory is read. */
  readonly rest: number;
}

/** Milliseconds. */
const PATIENCE = 60_000;

export async function measureReload(options: ReloadOptions): Promise<ReloadSample> {
  const { server, corefile, rest } = options;
  const { pid } = server;
  const { resident: before, own } = processMemory(pid);
  using ownPeak = new OwnPeak(pid);
  forgetPeak(pid);
  const asker = new Asker(server.port, options.name);
  const asking = asker.run();
  const { printed } = server;
  // The reload changes a part that has nothing to do with the cluster.
  writeFileSync(
    corefile,
    readFileSync(corefile, "utf8").replace("    loadbalance\n", "    loadbalance\n    nsid bench\n"),
  );
  process.kill(pid, "SIGUSR1");
  const deadline = performance.now() + PATIENCE;
  while (!server.outputSince(printed).includes("Reloading complete")) {
    if (performance.now() > deadline)
      throw new Error(`the reload does not end:\n${server.outputSince(printed)}`);
    await delay(10);
  }
  await delay(rest * 1000);
  asker.stop();
  await asking;
  const { resident, peak } = processMemory(pid);
  return {
    beforeMegabytes: before,
    peakMegabytes: peak,
    ownBeforeMegabytes: own,
    ownPeakMegabytes: ownPeak.megabytes,
    afterMegabytes: resident,
    longestWait: asker.longest,
    asked: asker.asked,
  };
}

/** Asks one question after the other. */
class Asker {
  asked = 0;
  /** Milliseconds. */
  longest = 0;
  readonly #port: number;
  readonly #query: Uint8Array;
  #stopped = false;

  constructor(port: number, name: string) {
    this.#port = port;
    this.#query = encodeMessage(makeQuery({ name: Name.parse(name), type: RecordType.A }, { id: 1 }));
  }

  async run(): Promise<void> {
    const socket = createSocket("udp4");
    socket.connect(this.#port, "127.0.0.1");
    await once(socket, "connect");
    while (!this.#stopped) {
      const begun = performance.now();
      const answered = once(socket, "message");
      socket.send(this.#query);
      await answered;
      this.longest = Math.max(this.longest, performance.now() - begun);
      this.asked++;
      await delay(1);
    }
    socket.close();
  }

  stop(): void {
    this.#stopped = true;
  }
}
