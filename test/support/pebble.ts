/** Debian's pebble: a certificate authority for tests, on loopback, which resolves all names through one DNS server. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CertificateAuthority } from "./certificates.ts";
import { freePort } from "./free-ports.ts";
import { Program } from "./program.ts";

export interface PebbleOptions {
  /** Where it looks for challenges. */
  readonly dnsPort: number;
  /** Seconds that its certificates are good for. */
  readonly validity?: number;
}

export class Pebble implements AsyncDisposable {
  /** Of its directory. */
  readonly url: string;
  readonly program: Program;
  /** PEM: who signed the certificate that its HTTPS has. */
  readonly root: string;
  readonly #folder: string;

  private constructor(program: Program, url: string, root: string, folder: string) {
    this.program = program;
    this.url = url;
    this.root = root;
    this.#folder = folder;
  }

  static async start({ dnsPort, validity = 86_400 }: PebbleOptions): Promise<Pebble> {
    const folder = mkdtempSync(join(tmpdir(), "portolan-pebble-"));
    const authority = new CertificateAuthority("authority of the authority");
    const { certificate, key } = authority.issue({ commonName: "pebble", hosts: ["127.0.0.1"] });
    const [port, managementPort] = [await freePort(), await freePort()];
    writeFileSync(join(folder, "cert.pem"), certificate);
    writeFileSync(join(folder, "key.pem"), key);
    const pebble = {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${managementPort}`,
      certificate: "cert.pem",
      privateKey: "key.pem",
      httpPort: 1,
      tlsPort: 1,
      ocspResponderURL: "",
      externalAccountBindingRequired: false,
      certificateValidityPeriod: validity,
    };
    writeFileSync(join(folder, "pebble.json"), JSON.stringify({ pebble }));
    const program = new Program(
      "pebble",
      ["-config", "pebble.json", "-strict", "-dnsserver", `127.0.0.1:${dnsPort}`],
      // It refuses one nonce in twenty by itself; more often here, so that every run sees some.
      { cwd: folder, env: { PEBBLE_VA_NOSLEEP: "1", PEBBLE_WFE_NONCEREJECT: "20" } },
    );
    try {
      await program.waitForOutput(/ACME directory available/);
    } catch (error) {
      await program[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
    return new Pebble(program, `https://127.0.0.1:${port}/dir`, authority.certificate, folder);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.program[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
