/** Corefiles of papers whose back ends are replaced by small servers of ours. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NomadAgent } from "./nomad-agent.ts";
import { Route53Server, STATIC_KEY } from "./route53-server.ts";

export class BackEnds {
  readonly #folder = mkdtempSync(join(tmpdir(), "portolan-back-ends-"));
  readonly #servers: AsyncDisposable[] = [];

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server[Symbol.asyncDispose]()));
    rmSync(this.#folder, { recursive: true });
  }

  /** The same Corefile with the addresses of servers that were started for it. */
  async replaceIn(corefile: string): Promise<string> {
    let text = corefile;
    if (/^ *nomad\b/m.test(text)) {
      const { url } = this.#keep(await NomadAgent.start());
      text = text.replaceAll(/^( +address) .*/gm, `$1 ${url}`);
    }
    if (/^ *route53\b/m.test(text)) text = await this.#withRoute53(text);
    return text;
  }

  async #withRoute53(text: string): Promise<string> {
    const server = this.#keep(await Route53Server.start());
    const file = join(this.#folder, "aws");
    writeFileSync(file, `[dns]\naws_access_key_id = ${STATIC_KEY}\naws_secret_access_key = secret\n`);
    for (const [, name = "", id = ""] of text.matchAll(/([\w.-]+\.):(Z\w+)/g)) {
      const values = ["ns.test. h.test. 1 2 3 4 5"];
      server.zones.set(id, [{ name, type: "SOA", values }]);
    }
    return text
      .replaceAll(/^ +credentials .*\n/gm, "")
      .replaceAll(/^( *route53 .*\{)$/gm, `$1\naws_endpoint ${server.url}\ncredentials dns ${file}`);
  }

  #keep<T extends AsyncDisposable>(server: T): T {
    this.#servers.push(server);
    return server;
  }
}
