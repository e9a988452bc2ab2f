/**
 * Logs a warning, once, when a cluster outgrows the memory limit of the process, before the system kills it: no part
 * of a cluster can be dropped.
 */
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import type { Clock, Logger, Timer } from "../../plugin/index.ts";

export interface MemoryNoticeOptions {
  /** Memory limit of the process in bytes. */
  readonly limit: number;
  /** Anonymous memory of the process in bytes. File pages do not count because the system reclaims them first. */
  readonly own: () => number;
  readonly stores: readonly (Pick<ClusterStore, "octets" | "kinds"> & {
    readonly pods: Pick<ClusterStore["pods"], "octets">;
  })[];
  readonly clock: Clock;
  readonly log: Pick<Logger, "warning">;
}

/** Milliseconds between two checks, short because lists grow memory fast. */
const INTERVAL = 500;
/**
 * Above this share of the limit a relist, a reload or a burst may not fit: sockets and page tables count towards the
 * limit as well.
 */
const TIGHT = 0.65;
/** A cluster below this share of the limit is not the cause. */
const LARGE = 1 / 8;

export class MemoryNotice {
  readonly #options: MemoryNoticeOptions;
  #timer: Timer | undefined;
  #isTold = false;

  constructor(options: MemoryNoticeOptions) {
    this.#options = options;
  }

  start(): void {
    if (!this.#isTold) this.#timer ??= this.#options.clock.every(INTERVAL, () => this.#look());
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #look(): void {
    const { limit, own, stores, log } = this.#options;
    const cluster = sumOf(stores, (store) => store.octets);
    if (cluster < LARGE * limit) return;
    const octets = own();
    if (octets < TIGHT * limit) return;
    this.stop();
    this.#isTold = true;
    const pods = sumOf(stores, (store) => store.pods.octets);
    const ofPods = stores.some(({ kinds }) => kinds.has("pods"))
      ? [`pods insecure, which keeps none of the ${inMebibytes(pods)} for pods`]
      : [];
    const less = [...ofPods, "namespaces", "labels"].join("; ");
    log.warning(
      `the cluster takes ${inMebibytes(cluster)}, and the server ${inMebibytes(octets)} of the limit of ${inMebibytes(limit)}: ` +
        `raise the memory limit, or the server may be killed; options that store less of the cluster: ${less} (portolan_memory_cluster_bytes shows how much)`,
    );
  }
}

function sumOf<T>(values: readonly T[], octets: (value: T) => number): number {
  return values.reduce((sum, value) => sum + octets(value), 0);
}

function inMebibytes(octets: number): string {
  return `${Math.round(octets / 2 ** 20)} MiB`;
}
