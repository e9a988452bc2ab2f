/**
 * Reloads one after the other between Corefiles with one thread and with two, while clients ask over UDP and over new TCP connections and other processes keep
 * the processors busy.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { queryOctets, TcpClient, UdpClient } from "./dns-client.ts";
import { Portolan } from "./portolan.ts";

export interface StormOptions {
  readonly reloads: number;
  /** Processes that do nothing but keep a processor busy. */
  readonly busy: number;
  /** Milliseconds from one reload to the next. One that takes longer is waited for. */
  readonly pause: number;
  readonly say: (line: string) => void;
}

export interface StormReport {
  readonly reloads: number;
  readonly udp: LoadReport;
  readonly tcp: LoadReport;
  /** Of the longest reload. */
  readonly longestSeconds: number;
  readonly log: string;
}

export interface LoadReport {
  sent: number;
  lost: number;
}

/** The longest that a reload may take on a machine whose processors are busy. */
const LONGEST = 60_000;
/** Clients over UDP and over TCP, each with one query or connection at a time. */
const CLIENTS = 3;
const TEMPLATE = 'template IN A good.test {\n answer "{{ .Name }} 60 IN A 192.0.2.1"\n }';

/**
 * @returns what was lost, which is for the caller to judge
 * @throws Error where a reload does not end, or the server does
 */
export async function reloadStorm({ reloads, busy, pause, say }: StormOptions): Promise<StormReport> {
  const corefiles = [
    (port: number, serial: number) => `.:${port} {\n multisocket 2\n cache\n ${TEMPLATE}\n}\n# ${serial}\n`,
    (port: number, serial: number) =>
      `.:${port} {\n view other {\n expr client_ip() == '127.0.0.2'\n }\n ${TEMPLATE}\n}\n.:${port} {\n cache\n ${TEMPLATE}\n}\n# ${serial}\n`,
  ] as const;
  await using server = await Portolan.start((port) => corefiles[0](port("dns"), 0), {
    args: ["-quiet"],
  });
  const loops = Array.from({ length: busy }, () =>
    spawn(process.execPath, ["-e", "for (;;);"], { stdio: "ignore" }),
  );
  const load = new Load(server);
  try {
    let longest = 0;
    for (let serial = 1; serial <= reloads; serial++) {
      const begin = performance.now();
      const written = server.log.length;
      const corefile = corefiles[serial % 2 === 0 ? 0 : 1];
      server.writeCorefile(corefile(server.port, serial));
      server.program.kill("SIGUSR1");
      await within(
        LONGEST,
        server.waitForLog(/\[INFO\] Reloading complete|\[ERROR\] Restart failed/, written),
      );
      const took = performance.now() - begin;
      longest = Math.max(longest, took);
      if (serial % 100 === 0)
        say(`${serial} of ${reloads} reloads, the longest ${(longest / 1000).toFixed(1)} s`);
      await load.go(Math.max(0, pause - took));
    }
    const { udp, tcp } = await load.end();
    const done = server.log.match(/\[INFO\] Reloading complete/g) ?? [];
    return { reloads: done.length, udp, tcp, longestSeconds: longest / 1000, log: server.log };
  } finally {
    await load.end();
    await Promise.all(loops.map(endProcess));
  }
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

async function within<T>(patience: number, task: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`a reload took more than ${patience / 1000} s`)),
    patience,
  );
  try {
    return await Promise.race([task, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Clients that ask for names that are mostly new. */
class Load {
  readonly #udp: LoadReport = { sent: 0, lost: 0 };
  readonly #tcp: LoadReport = { sent: 0, lost: 0 };
  readonly #server: Portolan;
  readonly #loops: Promise<void>[];
  #isOver = false;
  #serial = 0;

  constructor(server: Portolan) {
    this.#server = server;
    this.#loops = Array.from({ length: CLIENTS }, () => [
      this.#loop(this.#udp, () => this.#askUdp()),
      this.#loop(this.#tcp, () => this.#askTcp()),
    ]).flat();
  }

  /** Lets the clients ask for that many milliseconds. */
  go(milliseconds: number): Promise<void> {
    return new Promise((resolve) => void setTimeout(resolve, milliseconds));
  }

  async end(): Promise<{ readonly udp: LoadReport; readonly tcp: LoadReport }> {
    this.#isOver = true;
    await Promise.all(this.#loops);
    return { udp: this.#udp, tcp: this.#tcp };
  }

  async #loop(report: LoadReport, ask: () => Promise<boolean>): Promise<void> {
    while (!this.#isOver) {
      report.sent++;
      if (!(await ask())) report.lost++;
      await this.go(3);
    }
  }

  async #askUdp(): Promise<boolean> {
    await using client = await UdpClient.connect(this.#server);
    client.send(this.#query());
    return (await client.receive()) !== undefined;
  }

  /** Two queries on one new connection. */
  async #askTcp(): Promise<boolean> {
    try {
      await using client = await TcpClient.connect(this.#server);
      client.send(this.#query());
      client.send(this.#query());
      return (await client.receive()) !== undefined && (await client.receive()) !== undefined;
    } catch {
      return false;
    }
  }

  #query(): Uint8Array {
    return queryOctets(`n${++this.#serial % 997}.good.test.`);
  }
}
