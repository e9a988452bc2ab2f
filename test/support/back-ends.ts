/** Corefiles of papers whose back ends are replaced by small servers of ours. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { AzureServer } from "./azure-server.ts";
import { CloudDnsServer } from "./cloud-dns-server.ts";
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
    if (/^ *clouddns\b/m.test(text)) text = await this.#withCloudDns(text);
    if (/^ *azure\b/m.test(text)) text = await this.#withAzure(text);
    return text;
  }

  /** Its library talks TLS alone, and takes the place to sign in from the environment. */
  async #withAzure(text: string): Promise<string> {
    const server = this.#keep(await AzureServer.start());
    tls.setDefaultCACertificates([...tls.getCACertificates("default"), server.authority]);
    process.env.AZURE_AUTHORITY_HOST = server.url;
    const soaRecord = {
      host: "ns.test",
      email: "h.test",
      serialNumber: 1,
      refreshTime: 1,
      retryTime: 1,
      expireTime: 1,
      minimumTTL: 1,
    };
    for (const [, group, zone] of text.matchAll(/([\w-]+):([\w-]+\.[\w.-]+)/g)) {
      const path = `/subscriptions/s1/resourceGroups/${group}/providers/Microsoft.Network/privateDnsZones/${zone}/ALL`;
      server.zones.set(path, [{ name: "@", type: "x/SOA", properties: { ttl: 1, soaRecord } }]);
    }
    const signIn = `endpoint ${server.url}\nsubscription s1\ntenant t1\nclient c1\nsecret s3cret`;
    return text.replaceAll(/^ +subscription .*\n/gm, "").replaceAll(/^( *azure .*\{)$/gm, `$1\n${signIn}`);
  }

  async #withCloudDns(text: string): Promise<string> {
    const server = this.#keep(await CloudDnsServer.start());
    const [token, file] = [join(this.#folder, "jwt"), join(this.#folder, "google.json")];
    writeFileSync(token, "jwt");
    writeFileSync(file, server.credentials(token));
    for (const [, name = "", project = "", zone = ""] of text.matchAll(/([\w.-]+\.):([\w-]+):([\w-]+)/g))
      server.zones.set(`${project}/${zone}`, [
        { name, type: "SOA", ttl: 1, rrdatas: ["ns.test. h.test. 1 2 3 4 5"] },
      ]);
    return text
      .replaceAll(/^ +credentials .*\n/gm, "")
      .replaceAll(/^( *clouddns .*\{)$/gm, `$1\nendpoint ${server.url}\ncredentials ${file}`);
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
