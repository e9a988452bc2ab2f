/** Real resolvers from Debian's packages, on loopback, with a few names of their own. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { missingTools } from "../../scripts/lib/system-tools.mjs";
import { waitForServer } from "./dns-client.ts";
import { freePort } from "./free-ports.ts";
import { Program } from "./program.ts";

/** Daemons are kept where only root's PATH leads. */
const PATH = `${process.env.PATH ?? ""}:/usr/sbin:/sbin`;

/** For the `skip` option of a test: why it cannot run here, or false where it can. */
export function skipWithoutPeers(...names: readonly string[]): string | false {
  const missing = missingTools(names, PATH);
  return missing.length === 0 ? false : `not installed: ${missing.join(", ")}`;
}

/** Where an authoritative server has its zone from; `notify` is the port of a secondary on loopback. With a key, all of that is signed. */
export type ZoneSource = { readonly key?: PeerKey } & (
  | { readonly lines: readonly string[]; readonly notify?: number }
  | { readonly primary: number }
);

/** A key of TSIG, for HMAC-SHA-256. */
export interface PeerKey {
  readonly name: string;
  /** In base64. */
  readonly secret: string;
}

export class Peer implements AsyncDisposable {
  readonly address = "127.0.0.1";
  readonly port: number;
  readonly program: Program;
  readonly #folder: string;

  private constructor(command: string, args: readonly string[], port: number, folder: string) {
    this.port = port;
    this.#folder = folder;
    this.program = new Program(command, args, { cwd: folder, env: { PATH } });
  }

  /** unbound with these records, each a line of zone text, and nothing else in the world. */
  static async unbound(records: readonly string[], options: readonly string[] = []): Promise<Peer> {
    return Peer.#start("unbound", (port) => ({
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
    return Peer.#start("dnsmasq", (port) => ({
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

  /** NSD with one zone, from these lines of text or from a primary. */
  static async nsd(zone: string, source: ZoneSource): Promise<Peer> {
    const { key } = source;
    const keyName = key?.name ?? "NOKEY";
    return Peer.#start("nsd", (port) => ({
      args: ["-d", "-c", "nsd.conf"],
      config: [
        "server:",
        "  ip-address: 127.0.0.1",
        `  port: ${port}`,
        "  server-count: 1",
        '  username: ""',
        '  chroot: ""',
        '  zonesdir: "."',
        '  database: ""',
        '  pidfile: "nsd.pid"',
        '  zonelistfile: "zone.list"',
        '  xfrdfile: "xfrd.state"',
        '  xfrdir: "."',
        "  xfrd-reload-timeout: 0",
        "  rrl-ratelimit: 0",
        "  minimal-responses: no",
        "remote-control:",
        "  control-enable: no",
        ...(key === undefined
          ? []
          : ["key:", `  name: "${key.name}"`, "  algorithm: hmac-sha256", `  secret: "${key.secret}"`]),
        "zone:",
        `  name: "${zone}"`,
        '  zonefile: "zone"',
        ...("primary" in source
          ? [`  request-xfr: 127.0.0.1@${source.primary} ${keyName}`, `  allow-notify: 127.0.0.1 ${keyName}`]
          : [`  provide-xfr: 127.0.0.1 ${keyName}`]),
        ...("notify" in source ? [`  notify: 127.0.0.1@${source.notify} ${keyName}`] : []),
      ],
      files: "lines" in source ? { zone: `${source.lines.join("\n")}\n` } : {},
    }));
  }

  /** Knot with one zone, from these lines of text or from a primary. */
  static async knot(zone: string, source: ZoneSource): Promise<Peer> {
    const { key } = source;
    const keyLines = key === undefined ? [] : [`    key: ${key.name}`];
    return Peer.#start("knotd", (port) => ({
      args: ["-c", "knotd.conf"],
      config: [
        "server:",
        '  rundir: "."',
        `  listen: 127.0.0.1@${port}`,
        "database:",
        '  storage: "."',
        ...(key === undefined
          ? []
          : ["key:", `  - id: ${key.name}`, "    algorithm: hmac-sha256", `    secret: ${key.secret}`]),
        "remote:",
        "  - id: other",
        `    address: 127.0.0.1@${"primary" in source ? source.primary : (source.notify ?? 9)}`,
        ...keyLines,
        "acl:",
        "  - id: all",
        "    address: 127.0.0.1",
        ...keyLines,
        "    action: [transfer, notify]",
        "zone:",
        `  - domain: "${zone}"`,
        '    storage: "."',
        '    file: "zone"',
        "    acl: all",
        "    semantic-checks: off",
        "    refresh-min-interval: 2",
        ...("primary" in source ? ["    master: other"] : []),
        ...("notify" in source ? ["    notify: other"] : []),
      ],
      files: "lines" in source ? { zone: `${source.lines.join("\n")}\n` } : {},
    }));
  }

  static async #start(
    command: "unbound" | "dnsmasq" | "nsd" | "knotd",
    describe: (port: number) => {
      readonly args: readonly string[];
      readonly config: readonly string[];
      readonly files?: Readonly<Record<string, string>>;
    },
  ): Promise<Peer> {
    const folder = mkdtempSync(join(tmpdir(), `portolan-${command}-`));
    const port = await freePort();
    const { args, config, files = {} } = describe(port);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    writeFileSync(join(folder, `${command}.conf`), `${config.join("\n")}\n`);
    const peer = new Peer(command, args, port, folder);
    const signal = AbortSignal.timeout(30_000);
    if (await waitForServer(peer, () => peer.program.hasEnded || signal.aborted)) return peer;
    await peer[Symbol.asyncDispose]();
    throw new Error(`does not answer:\n${peer.program.describe()}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.program[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
