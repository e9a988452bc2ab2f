/** The plugin process of Istio's CoreDNS: answers for ServiceEntries over gRPC (docs/spec/kube-dns.md#istio). */

import type { ProcessLog } from "../../lib/logging/log.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Random } from "../../plugin/contract/site.ts";
import { CorefileServer } from "../corefile-server.ts";
import { quoted } from "../kube-dns/kube-dns-corefile.ts";

export interface IstioCoreDnsOptions {
  /** Path of a kubeconfig; empty for the cluster of this pod. */
  readonly kubeconfig: string;
  /** Context of the kubeconfig; empty for the current one. */
  readonly context: string;
  /** Files and folders that replace the API. */
  readonly manifests: readonly string[];
  /** Addresses for hosts without addresses. */
  readonly defaultAddresses: readonly string[];
  /** Whether hosts without addresses get addresses of Istio's range. */
  readonly automaticAddresses: boolean;
  /** Empty for all addresses. */
  readonly bind: string;
  readonly port: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ProcessLog;
  readonly failed: (reason: string) => void;
}

export class IstioCoreDns {
  readonly #server: CorefileServer;
  readonly #corefile: string;

  constructor(options: IstioCoreDnsOptions) {
    const { clock, random, log, failed } = options;
    this.#corefile = corefileOf(options);
    this.#server = new CorefileServer({
      name: "istio-coredns",
      plugins: [],
      clock,
      random,
      log,
      metrics: new MetricsRegistry({ processMetrics: false }),
      onFatal: failed,
    });
  }

  /** @throws the error in words */
  start(): Promise<void> {
    return this.#server.serve(this.#corefile);
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}

function corefileOf(options: IstioCoreDnsOptions): string {
  const { bind, port, kubeconfig, context, manifests, defaultAddresses, automaticAddresses } = options;
  const source =
    manifests.length > 0
      ? [`manifests ${manifests.map(quoted).join(" ")}`]
      : kubeconfig === ""
        ? []
        : [`kubeconfig ${[kubeconfig, ...(context === "" ? [] : [context])].map(quoted).join(" ")}`];
  const lines = [
    ...source,
    ...(defaultAddresses.length > 0 ? [`default_address ${defaultAddresses.join(" ")}`] : []),
    ...(automaticAddresses ? ["automatic_addresses"] : []),
  ];
  return [
    `grpc://.:${port} {`,
    ...(bind === "" ? [] : [`    bind ${bind}`]),
    "    errors",
    "    istio {",
    ...lines.map((line) => `        ${line}`),
    "    }",
    "}",
    "",
  ].join("\n");
}
