/** A real etcd from Debian's package, on loopback, with an empty store. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EtcdClient } from "../../src/etcd/client/etcd-client.ts";
import { SystemClock } from "../../src/lib/time/clock.ts";
import type { CertificateAuthority } from "./certificates.ts";
import { freePort } from "./free-ports.ts";
import { Program, run } from "./program.ts";

export interface EtcdOptions {
  /** Serves TLS with a certificate of this authority, and wants one of it from clients. */
  readonly authority?: CertificateAuthority;
}

export class EtcdServer implements AsyncDisposable {
  readonly folder: string;
  readonly port: number;
  readonly #peerPort: number;
  readonly #options: EtcdOptions;
  #program: Program;

  private constructor(folder: string, port: number, peerPort: number, options: EtcdOptions) {
    this.folder = folder;
    this.port = port;
    this.#peerPort = peerPort;
    this.#options = options;
    this.#program = this.#launch();
  }

  static async start(options: EtcdOptions = {}): Promise<EtcdServer> {
    const folder = mkdtempSync(join(tmpdir(), "portolan-etcd-"));
    if (options.authority !== undefined) {
      const server = options.authority.issue({ commonName: "etcd", hosts: ["127.0.0.1"] });
      const client = options.authority.issue({ commonName: "client" });
      writeFileSync(join(folder, "ca.pem"), options.authority.certificate);
      writeFileSync(join(folder, "server.pem"), server.certificate);
      writeFileSync(join(folder, "server.key"), server.key);
      writeFileSync(join(folder, "client.pem"), client.certificate);
      writeFileSync(join(folder, "client.key"), client.key);
    }
    const server = new EtcdServer(folder, await freePort(), await freePort(), options);
    await server.#untilItAnswers();
    return server;
  }

  get url(): string {
    return `${this.#options.authority === undefined ? "http" : "https"}://127.0.0.1:${this.port}`;
  }

  /** Runs `etcdctl`. @throws where it fails */
  async control(...words: readonly string[]): Promise<string> {
    const { code, output, errors } = await run("etcdctl", [...this.#tlsFlags(), ...words], {
      env: { ETCDCTL_API: "3", ETCDCTL_ENDPOINTS: this.url },
    });
    if (code !== 0) throw new Error(`etcdctl ${words.join(" ")}: ${errors}${output}`);
    return output.trim();
  }

  /** Puts values, which are objects or texts, and deletes keys whose value is null. */
  async put(entries: Readonly<Record<string, unknown>>): Promise<void> {
    await using client = this.#client();
    const mutations = Object.entries(entries).map(([key, value]) =>
      value === null
        ? { remove: { from: Buffer.from(key) } }
        : {
            put: Buffer.from(key),
            value: Buffer.from(typeof value === "string" ? value : JSON.stringify(value)),
          },
    );
    for (let at = 0; at < mutations.length; at += 100) await client.change(mutations.slice(at, at + 100));
  }

  /** Puts a key with a new lease of this many seconds. @returns the lease, as etcdctl writes it */
  async putWithLease(key: string, value: unknown, seconds: number): Promise<string> {
    const granted = await this.control("lease", "grant", String(seconds));
    const lease = /lease (\w+) granted/.exec(granted)?.[1] ?? "";
    await this.control("put", `--lease=${lease}`, key, JSON.stringify(value));
    return lease;
  }

  async stop(): Promise<void> {
    await this.#program.stop("SIGKILL");
  }

  /** Starts it again with what it knew. */
  async restart(): Promise<void> {
    this.#program = this.#launch();
    await this.#untilItAnswers();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #launch(): Program {
    const peer = `http://127.0.0.1:${this.#peerPort}`;
    const tls =
      this.#options.authority === undefined
        ? []
        : [
            "--cert-file=server.pem",
            "--key-file=server.key",
            "--trusted-ca-file=ca.pem",
            "--client-cert-auth",
          ];
    return new Program(
      "etcd",
      [
        "--data-dir=data",
        `--listen-client-urls=${this.url}`,
        `--advertise-client-urls=${this.url}`,
        `--listen-peer-urls=${peer}`,
        `--initial-advertise-peer-urls=${peer}`,
        `--initial-cluster=default=${peer}`,
        ...tls,
      ],
      { cwd: this.folder },
    );
  }

  #tlsFlags(): string[] {
    if (this.#options.authority === undefined) return [];
    const file = (name: string) => join(this.folder, name);
    return [`--cacert=${file("ca.pem")}`, `--cert=${file("client.pem")}`, `--key=${file("client.key")}`];
  }

  #client(): EtcdClient & AsyncDisposable {
    const client = new EtcdClient({ endpoints: [this.url], clock: new SystemClock(), timeout: 10_000 });
    return Object.assign(client, {
      async [Symbol.asyncDispose]() {
        client.close();
      },
    });
  }

  async #untilItAnswers(): Promise<void> {
    const deadline = performance.now() + 30_000;
    for (;;) {
      try {
        await this.control("endpoint", "health", "--command-timeout=1s");
        return;
      } catch (error) {
        if (this.#program.hasEnded || performance.now() > deadline)
          throw new Error(`does not answer:\n${this.#program.describe()}`, { cause: error });
      }
    }
  }
}
