/** Clients that ask over many QUIC connections and then vanish, against a server in a control group with little memory. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { CertificateAuthority } from "../../test/support/certificates.ts";
import { framed, queryOctets } from "../../test/support/dns-client.ts";
import { freePort } from "../../test/support/free-ports.ts";
import { type QuicCall, QuicCaller } from "../../test/support/quic-client.ts";
import { processMemory } from "../cluster/process-memory.ts";
import { ControlGroup } from "../memory/control-group.ts";
import { RunningServer } from "../run/running-server.ts";
import { portolanCommand } from "../servers/portolan.ts";
import type { QuicUnreadSample } from "./soak-results.ts";

export interface QuicUnreadOptions {
  readonly mebibytes: number;
  /** In all. */
  readonly connections: number;
  /** How long the good client goes on after the last one has vanished. */
  readonly seconds: number;
  readonly folder: string;
}

export interface QuicUnreadOrder {
  readonly port: number;
  readonly connections: number;
  /** PEM. */
  readonly authority: string;
}

/** The name that those clients ask for, which has a TXT record of 200 octets. */
export const LONG_NAME = "long.example.";
/** Queries of each connection. */
export const STREAMS = 95;
/** Processes that vanish one after the other. */
const PROCESSES = 6;
/** Milliseconds between two queries of the client that reads, and until one is lost. */
const PAUSE = 100;
const PATIENCE = 5_000;
const START_PATIENCE = 60_000;
/** The longest that one process may take for its connections. */
const VANISH_PATIENCE = 120_000;

/** @throws Error where the server ends */
export async function measureQuicUnread(options: QuicUnreadOptions): Promise<QuicUnreadSample> {
  const { mebibytes, connections, seconds, folder } = options;
  const authority = new CertificateAuthority();
  const { certificate, key } = authority.issue({ commonName: "dns", hosts: ["example.org"] });
  using group = new ControlGroup(`portolan-quic-${process.pid}`, mebibytes);
  const place = { folder: join(folder, "quic-unread"), port: await freePort() };
  const quicPort = await freePort();
  const { command, args } = portolanCommand(join(place.folder, "Corefile"));
  const files = { Corefile: corefile(place.port, quicPort), "cert.pem": certificate, "key.pem": key };
  await using server = RunningServer.startMeasured(
    "portolan",
    { ...group.command(command, args), files },
    place,
  );
  const caller = await QuicCaller.open(authority.certificate);
  const vanished: ChildProcess[] = [];
  try {
    const query = framed(queryOctets("www.example.", "A", 0));
    const good = await dialUntilThere(caller, quicPort, server);
    const answers = { quic: [] as Promise<boolean>[], fresh: [] as Promise<boolean>[] };
    let turn = 0;
    const timer = setInterval(() => {
      answers.quic.push(isAnswered(good, query));
      // Each second, a client that is new.
      if (turn++ % 10 === 0) answers.fresh.push(isAnsweredAnew(caller, quicPort, query));
    }, PAUSE);
    let connected = 0;
    for (let process = 0; process < PROCESSES; process++) {
      const order = {
        port: quicPort,
        connections: connections / PROCESSES,
        authority: authority.certificate,
      };
      const child = fork(fileURLToPath(new URL("quic-unread-process.ts", import.meta.url)), [
        JSON.stringify(order satisfies QuicUnreadOrder),
      ]);
      vanished.push(child);
      const [count] = await once(child, "message", { signal: AbortSignal.timeout(VANISH_PATIENCE) });
      connected += Number(count);
      server.assertRunning();
    }
    await delay(seconds * 1000);
    clearInterval(timer);
    const lost = await countLost(answers.quic);
    const lostAnew = await countLost(answers.fresh);
    server.assertRunning();
    const { kills, peakMegabytes } = group.events;
    const residentMegabytes = processMemory(server.pid).resident;
    return {
      mebibytes,
      connections,
      connected,
      asked: answers.quic.length,
      lost,
      askedAnew: answers.fresh.length,
      lostAnew,
      kills,
      peakMegabytes,
      residentMegabytes,
    };
  } finally {
    // They take no other signal.
    for (const child of vanished) child.kill("SIGKILL");
    caller.close();
  }
}

async function countLost(answers: readonly Promise<boolean>[]): Promise<number> {
  return (await Promise.all(answers)).filter((answered) => !answered).length;
}

/** @throws Error where the server does not answer at all */
async function dialUntilThere(caller: QuicCaller, port: number, server: RunningServer): Promise<QuicCall> {
  for (const deadline = performance.now() + START_PATIENCE; ; ) {
    try {
      return await caller.dial(port, "doq", "example.org").connected();
    } catch (error) {
      server.assertRunning();
      if (performance.now() > deadline)
        throw new Error(`Portolan does not answer:\n${server.output}`, { cause: error });
      await delay(50);
    }
  }
}

function isAnswered(call: QuicCall, query: Uint8Array): Promise<boolean> {
  if (!call.connection.isOpen) return Promise.resolve(false);
  return Promise.race([call.ask(query).then((octets) => octets !== undefined), after(PATIENCE)]);
}

async function isAnsweredAnew(caller: QuicCaller, port: number, query: Uint8Array): Promise<boolean> {
  const attempt = async (): Promise<boolean> => {
    const call = await caller.dial(port, "doq", "example.org").connected();
    const answer = await call.ask(query);
    call.connection.close(0);
    return answer !== undefined;
  };
  return Promise.race([attempt().catch(() => false), after(PATIENCE)]);
}

async function after(milliseconds: number): Promise<false> {
  await delay(milliseconds, undefined, { ref: false });
  return false;
}

function corefile(port: number, quicPort: number): string {
  return `.:${port} quic://.:${quicPort} {
    bind 127.0.0.1
    tls cert.pem key.pem
    template IN TXT ${LONG_NAME} {
        answer "{{ .Name }} 60 IN TXT ${"a".repeat(200)}"
    }
    template IN A example. {
        answer "{{ .Name }} 60 IN A 192.0.2.1"
    }
}
`;
}
