/** Real servers from Debian's packages, on loopback: resolvers with a few names of their own, and what others start here. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TOOL_PATH } from "../../scripts/lib/system-tools.mjs";
import { waitForServer } from "./dns-client.ts";
import { freePort } from "./free-ports.ts";
import { Program } from "./program.ts";

export interface PeerDescription {
  readonly args: readonly string[];
  /** Lines of its configuration. */
  readonly config: readonly string[];
  /** Its further files, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

export class Peer implements AsyncDisposable {
  readonly address = "127.0.0.1";
  readonly port: number;
  readonly program: Program;
  readonly #folder: string;

  private constructor(command: string, args: readonly string[], port: number, folder: string) {
    this.port = port;
    this.#folder = folder;
    this.program = new Program(command, args, { cwd: folder, env: { PATH: TOOL_PATH } });
  }

  /** unbound with these records, each a line of zone text, and nothing else in the world. */
  static async unbound(records: readonly string[], options: readonly string[] = []): Promise<Peer> {
    return Peer.start("unbound", (port) => ({
      args: ["-d", "-c", "unbound.conf"],
      config: [
        "server:",
        `  port: ${port}`,
        "  interface: 127.0.0.1",
        "  do-daemonize: no",
        '  username: ""',
        '  chroot: ""',
        '  directory: "."',
        '  pidfile: ""',
        "  use-syslog: no",
        "  verbosity: 1",
        "  do-not-query-localhost: no",
        // Everything that is not below has no answer from the world outside: it does not exist.
        "  local-zone: . static",
        ...records.map((record) => `  local-data: '${record}'`),
        ...options.map((option) => `  ${option}`),
      ],
    }));
  }

  /** dnsmasq with these lines of configuration, and nothing else in the world. */
  static async dnsmasq(lines: readonly string[]): Promise<Peer> {
    return Peer.start("dnsmasq", (port) => ({
      args: ["--keep-in-foreground", "--conf-file=dnsmasq.conf"],
      config: [
        `port=${port}`,
        "listen-address=127.0.0.1",
        "bind-interfaces",
        "no-resolv",
        "no-hosts",
        "pid-file",
        ...(process.getuid?.() === 0 ? ["user=root"] : []),
        ...lines,
      ],
    }));
  }

  /**
   * A daemon that reads `COMMAND.conf` in a folder of its own.
   * @param port any, unless given
   */
  static async start(
    command: string,
    describe: (port: number) => PeerDescription,
    port?: number,
  ): Promise<Peer> {
    return Peer.#startAt(command, describe, port ?? (await freePort()));
  }

  static async #startAt(
    command: string,
    describe: (port: number) => PeerDescription,
    port: number,
  ): Promise<Peer> {
    const folder = mkdtempSync(join(tmpdir(), `portolan-${command}-`));
    const { args, config, files = {} } = describe(port);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, `${command}.conf`), `${config.join("\n")}\n`);
    const peer = new Peer(command, args, port, folder);
    const signal = AbortSignal.timeout(30_000);
    if (await waitForServer(peer, () => peer.program.hasEnded || signal.aborted)) return peer;
    await peer[Symbol.asyncDispose]();
    throw new Error(`does not answer:\n${peer.program.describe()}`);
  }

  /** Gives it another file, and has it read its files again. */
  replaceFile(name: string, text: string): void {
    writeFileSync(join(this.#folder, name), text);
    this.program.kill("SIGHUP");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.program[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
