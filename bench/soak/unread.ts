/** Clients that pipeline queries over TCP without end and read no reply, against a server in a control group with little memory. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { freePort } from "../../test/support/free-ports.ts";
import { processMemory } from "../cluster/process-memory.ts";
import { frame } from "../load/length-framing.ts";
import { ControlGroup } from "../memory/control-group.ts";
import { encodeQuery } from "../run/ask.ts";
import { RunningServer } from "../run/running-server.ts";
import { portolanCommand } from "../servers/portolan.ts";
import type { UnreadSample } from "./soak-results.ts";

export interface UnreadOptions {
  readonly mebibytes: number;
  readonly connections: number;
  readonly seconds: number;
  readonly folder: string;
}

export interface UnreadOrder {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
}

/** The name that those clients ask for, which has a TXT record of 200 octets. */
export const LONG_NAME = "long.example.";
/** Milliseconds between two queries of a client that reads, and until one is lost. */
const PAUSE = 100;
const PATIENCE = 5_000;
const START_PATIENCE = 60_000;

/** @throws Error where the server ends */
export async function measureUnread(options: UnreadOptions): Promise<UnreadSample> {
  const { mebibytes, connections, seconds, folder } = options;
  using group = new ControlGroup(`portolan-unread-${process.pid}-${connections}`, mebibytes);
  const place = { folder: join(folder, `unread-${connections}`), port: await freePort() };
  const { command, args } = portolanCommand(join(place.folder, "Corefile"));
  const plan = { ...group.command(command, args), files: { Corefile: corefile(place.port) } };
  await using server = RunningServer.startMeasured("portolan", plan, place);
  for (
    const deadline = performance.now() + START_PATIENCE;
    !(await isAnswered(place.port));
    await delay(50)
  ) {
    server.assertRunning();
    if (performance.now() > deadline) throw new Error(`Portolan does not answer:\n${server.output}`);
  }
  const order: UnreadOrder = { port: place.port, connections, seconds };
  const child = fork(fileURLToPath(new URL("unread-process.ts", import.meta.url)), [JSON.stringify(order)], {
    stdio: "inherit",
  });
  const ended = once(child, "exit");
  const answers: Promise<boolean>[] = [];
  const timer = setInterval(() => answers.push(isAnswered(place.port)), PAUSE);
  await ended;
  clearInterval(timer);
  const lost = (await Promise.all(answers)).filter((answered) => !answered).length;
  server.assertRunning();
  const { kills, peakMegabytes } = group.events;
  const residentMegabytes = processMemory(server.pid).resident;
  return { mebibytes, connections, asked: answers.length, lost, kills, peakMegabytes, residentMegabytes };
}

function corefile(port: number): string {
  return `.:${port} {
    bind 127.0.0.1
    template IN TXT ${LONG_NAME} {
        answer "{{ .Name }} 60 IN TXT ${"a".repeat(200)}"
    }
    template IN A example. {
        answer "{{ .Name }} 60 IN A 192.0.2.1"
    }
}
`;
}

/** A question over a connection of its own. */
function isAnswered(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", timeout: PATIENCE });
    const end = (answered: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answered);
    };
    const timer = setTimeout(() => end(false), PATIENCE);
    socket.on("error", () => end(false));
    socket.on("close", () => end(false));
    socket.once("data", () => end(true));
    socket.write(frame(encodeQuery({ name: "www.example.", type: "A" })));
  });
}
