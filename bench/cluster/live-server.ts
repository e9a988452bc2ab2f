/** Portolan beside the API of the benchmark, with the Corefile that installations of CoreDNS come with. */
import { mkdirSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { CertificateAuthority } from "../../test/support/certificates.ts";
import { freePort } from "../../test/support/free-ports.ts";
import type { ControlGroup } from "../memory/control-group.ts";
import { CLUSTER_ZONE } from "../names.ts";
import { RunningServer } from "../run/running-server.ts";
import { portolanCommand } from "../servers/portolan.ts";
import type { ClusterSize } from "./cluster-shape.ts";
import { RunningApi } from "./running-api.ts";

/** Milliseconds. */
const START_PATIENCE = 60_000;

export interface LiveApi extends AsyncDisposable {
  readonly api: RunningApi;
  /** PEM of the authority that the API's certificate is from. */
  readonly authority: string;
}

export interface LiveOptions {
  readonly upstreamPort: number;
  readonly cache: boolean;
  /** With `pods verified`: all pods are watched too. */
  readonly pods: boolean;
  /** Further lines for the server block. */
  readonly directives?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Another server than Portolan. */
  readonly server?: LiveServerKind;
  /** Where the server runs, if not beside everything else. */
  readonly group?: ControlGroup | undefined;
}

export interface LiveServerKind {
  readonly name: string;
  /** The command that starts it with a Corefile. */
  command(corefile: string): { readonly command: string; readonly args: readonly string[] };
}

export const PORTOLAN: LiveServerKind = { name: "portolan", command: portolanCommand };

/** @param streamsLists whether the API sends lists as the beginning of a watch, or in pages */
export async function startApi(size: ClusterSize, streamsLists: boolean): Promise<LiveApi> {
  const authority = new CertificateAuthority();
  const certificate = authority.issue({ commonName: "api", hosts: ["127.0.0.1"] });
  const api = await RunningApi.start({ size, ...certificate, streamsLists });
  return {
    api,
    authority: authority.certificate,
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  };
}

export class LiveServer {
  readonly #folder: string;
  readonly #options: LiveOptions;
  readonly #ports: LivePorts;

  private constructor(folder: string, options: LiveOptions, ports: LivePorts) {
    this.#folder = folder;
    this.#options = options;
    this.#ports = ports;
  }

  /** Writes down how the API is reached, and finds free ports. */
  static async prepare(
    folder: string,
    { api, authority }: LiveApi,
    options: LiveOptions,
  ): Promise<LiveServer> {
    mkdirSync(folder, { recursive: true });
    const ports = { port: await freePort(), readyPort: await freePort(), metricsPort: await freePort() };
    const live = new LiveServer(folder, options, ports);
    writeFileSync(live.#kubeconfig, kubeconfigText(api.port, authority));
    return live;
  }

  get corefile(): string {
    return join(this.#folder, "Corefile");
  }

  start(): RunningServer {
    const server = this.#options.server ?? PORTOLAN;
    const { command, args } = server.command(this.corefile);
    const plan = {
      ...(this.#options.group?.command(command, args) ?? { command, args }),
      files: { Corefile: liveCorefile(this.#options, this.#kubeconfig, this.#ports) },
      ...(this.#options.env === undefined ? {} : { env: this.#options.env }),
    };
    return RunningServer.startMeasured(server.name, plan, { folder: this.#folder, port: this.#ports.port });
  }

  /**
   * @param lookEvery milliseconds between two looks, each of which takes time of the server
   * @throws Error with what it printed, where it does not
   */
  async becomesReady(server: RunningServer, lookEvery = 5): Promise<void> {
    for (const deadline = performance.now() + START_PATIENCE; performance.now() < deadline; ) {
      server.assertRunning();
      if (await isReady(this.#ports.readyPort)) return;
      await delay(lookEvery);
    }
    throw new Error(`${server.kind.name} does not become ready:\n${server.output}`);
  }

  get #kubeconfig(): string {
    return join(this.#folder, "kubeconfig");
  }
}

function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    get({ port, host: "127.0.0.1", path: "/ready", agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on("error", () => resolve(false));
  });
}

function kubeconfigText(port: number, authority: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: "bench",
        cluster: {
          server: `https://127.0.0.1:${port}`,
          "certificate-authority-data": Buffer.from(authority).toString("base64"),
        },
      },
    ],
    users: [{ name: "bench", user: { token: "bench" } }],
    contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
    "current-context": "bench",
  });
}

interface LivePorts {
  readonly port: number;
  readonly readyPort: number;
  readonly metricsPort: number;
}

/** The Corefile that installations of CoreDNS come with, on ports of this machine. */
function liveCorefile(options: LiveOptions, kubeconfig: string, ports: LivePorts): string {
  const further = (options.directives ?? []).map((line) => `\n    ${line}`).join("");
  return `.:${ports.port} {
    bind 127.0.0.1
    errors${further}
    ready 127.0.0.1:${ports.readyPort}
    kubernetes ${CLUSTER_ZONE} in-addr.arpa ip6.arpa {
        kubeconfig "${kubeconfig}"
        pods ${options.pods ? "verified" : "insecure"}
        fallthrough in-addr.arpa ip6.arpa
        startup_timeout 60s
    }
    prometheus 127.0.0.1:${ports.metricsPort}
    forward . 127.0.0.1:${options.upstreamPort}
    ${options.cache ? "cache 30" : ""}
    loop
    reload
    loadbalance
}
`;
}
