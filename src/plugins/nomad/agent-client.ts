/** A client for Nomad's HTTP API: uses one of several agents until it fails, and a token that may change. */

import { readTextFile } from "../../lib/files/bounded-file.ts";
import type { TlsOptions } from "../../lib/net/http-client.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Site } from "../../plugin/index.ts";
import { ZoneSourceError } from "../../zones/backed/zone-source.ts";
import { HttpStatusError, type JsonAnswer, JsonClient } from "../../zones/backends/json-client.ts";

export interface AgentClientOptions {
  readonly site: Site;
  /** At least one address. */
  readonly addresses: readonly string[];
  readonly token: string | undefined;
  /** Read for each request: token renewal replaces the file. */
  readonly tokenFile: string | undefined;
}

interface Agent {
  readonly base: URL;
  /** For basic authentication, `""` for none. */
  readonly signIn: string;
  readonly client: JsonClient;
}

export class AgentClient {
  readonly #options: AgentClientOptions;
  #agents: readonly Agent[] = [];
  /** The agent that answered last. */
  #current = 0;

  constructor(options: AgentClientOptions) {
    this.#options = options;
  }

  /** @throws the error of the file system for certificates named in the environment */
  async open(): Promise<void> {
    const { site, addresses } = this.#options;
    const tls = await readTls(site);
    this.#agents = addresses.map((address) => {
      const url = new URL(address);
      const socketPath = url.protocol === "unix:" ? url.pathname : undefined;
      const { clock, random } = site;
      const { environment } = site.machine;
      // Another agent is tried before the same one is tried again.
      const client = new JsonClient({ clock, random, environment, tls, socketPath, attempts: 1 });
      const base = new URL(socketPath === undefined ? address : "http://localhost");
      const signIn =
        url.username === "" ? "" : [url.username, url.password].map(decodeURIComponent).join(":");
      [base.username, base.password] = ["", ""];
      return { base, signIn, client };
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#agents.map(({ client }) => client.close()));
  }

  /**
   * Sends a request to one agent after the other, first to the one that answered last. @param timeout milliseconds
   * @throws ZoneSourceError of the first agent if all fail
   */
  async get(
    path: string,
    parameters: Readonly<Record<string, string>>,
    signal: AbortSignal,
    timeout?: number,
  ): Promise<JsonAnswer> {
    const headers = await this.#headers();
    const { NOMAD_REGION: region } = this.#options.site.machine.environment;
    const faults: string[] = [];
    const first = this.#current;
    for (let tried = 0; tried < this.#agents.length; tried++) {
      const index = (first + tried) % this.#agents.length;
      const agent = this.#agents[index];
      if (agent === undefined) break;
      const url = new URL(path, agent.base);
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      if (region) url.searchParams.set("region", region);
      try {
        const answer = await agent.client.get(url, {
          headers: agent.signIn === "" ? headers : { ...headers, authorization: basic(agent.signIn) },
          signal,
          ...(timeout !== undefined && { timeout }),
        });
        this.#current = index;
        return answer;
      } catch (error) {
        if (error instanceof HttpStatusError && error.status === 403)
          throw new ZoneSourceError(`${error.message}: ${neededRight(parameters.namespace)}`);
        if (!(error instanceof ZoneSourceError) || !error.isTransient || signal.aborted) throw error;
        faults.push(error.message);
      }
    }
    throw new ZoneSourceError(faults.join("; "), { isTransient: true });
  }

  async #headers(): Promise<Record<string, string>> {
    const { site, token, tokenFile } = this.#options;
    const { NOMAD_TOKEN, NOMAD_HTTP_AUTH } = site.machine.environment;
    const headers: Record<string, string> = {};
    let secret = token ?? NOMAD_TOKEN ?? "";
    if (tokenFile !== undefined) {
      try {
        secret = (await readTextFile(site.resolvePath(tokenFile))).trim();
      } catch (error) {
        throw new ZoneSourceError(`token_file: ${messageOf(error)}`);
      }
    }
    if (secret !== "") headers["x-nomad-token"] = secret;
    if (NOMAD_HTTP_AUTH) headers.authorization = basic(NOMAD_HTTP_AUTH);
    return headers;
  }
}

/** @param signIn a name and a password with a colon between them */
function basic(signIn: string): string {
  return `Basic ${Buffer.from(signIn).toString("base64")}`;
}

/** An address for messages: without a password. */
export function printableAddress(address: string): string {
  return address.replace(/\/\/[^/?#]*@/, "//");
}

function neededRight(namespace = "default"): string {
  const where = namespace === "*" ? "all namespaces that it should see" : `the namespace "${namespace}"`;
  return `the token needs the capability read-job in ${where}`;
}

/** The TLS options that Nomad's own clients read from the environment. */
async function readTls(site: Site): Promise<TlsOptions | undefined> {
  const { environment } = site.machine;
  const read = async (name: string): Promise<string | undefined> => {
    const file = environment[name];
    if (!file) return undefined;
    try {
      return await readTextFile(file);
    } catch (error) {
      throw new Error(`${name}: ${messageOf(error)}`, { cause: error });
    }
  };
  const [ca, cert, key] = [
    await read("NOMAD_CACERT"),
    await read("NOMAD_CLIENT_CERT"),
    await read("NOMAD_CLIENT_KEY"),
  ];
  const servername = environment.NOMAD_TLS_SERVER_NAME || undefined;
  const isUnchecked = /^(1|t|true)$/i.test(environment.NOMAD_SKIP_VERIFY ?? "");
  const tls = {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(servername !== undefined && { servername }),
    ...(isUnchecked && { rejectUnauthorized: false }),
  };
  return Object.keys(tls).length === 0 ? undefined : tls;
}
