/** Says once that a cluster outgrows the memory that the process may have, before the system ends it: nothing of a cluster can be shed. */
import type { ClusterStore } from "../../kubernetes/store/store.ts";
import type { Clock, Logger, Timer } from "../../plugin/index.ts";

export interface MemoryNoticeOptions {
  /** Octets that the process may have. */
  readonly limit: number;
  /** Octets that it has of its own: the system takes pages of files away first. */
  readonly own: () => number;
  readonly stores: readonly (Pick<ClusterStore, "octets" | "kinds"> & {
    readonly pods: Pick<ClusterStore["pods"], "octets">;
  })[];
  readonly clock: Clock;
  readonly log: Pick<Logger, "warning">;
}

/** Milliseconds between two looks. A list adds some 10 MB a second. */
const INTERVAL = 500;
/** From this share of the limit on there is no room for a relist, a reload and a burst: sockets and page tables count for the system as well. */
const TIGHT = 0.65;
/** A cluster that takes less is not the cause. */
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
      `the cluster takes ${inMebibytes(cluster)}, and the server ${inMebibytes(octets)} of the ${inMebibytes(limit)} that it may have: ` +
        `raise the memory limit, or the server may be killed; options that keep less of the cluster: ${less} (portolan_memory_cluster_bytes shows how much)`,
    );
  }
}

function sumOf<T>(values: readonly T[], octets: (value: T) => number): number {
  return values.reduce((sum, value) => sum + octets(value), 0);
}

function inMebibytes(octets: number): string {
  return `${Math.round(octets / 2 ** 20)} MiB`;
}
