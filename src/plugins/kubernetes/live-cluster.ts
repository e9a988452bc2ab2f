/** The API of a cluster as the source of its stores, and the wait for the first lists. */

import { setImmediate as nextTurn } from "node:timers/promises";
import type { ClusterAccess } from "../../kubernetes/api/access/access.ts";
import { ApiSource } from "../../kubernetes/api/api-source.ts";
import type { RequestLimits } from "../../kubernetes/api/client/request-limiter.ts";
import { SnapshotFile } from "../../kubernetes/snapshot/snapshot-file.ts";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Site } from "../../plugin/index.ts";
import { loadMemoryRelease } from "../../runtime/memory-release.ts";
import { Thrift } from "../../runtime/thrift.ts";
import type { ClusterSource, LastingSite, WatchedCluster } from "./watched-cluster.ts";

export interface LiveClusterOptions {
  readonly access: ClusterAccess;
  readonly limits: RequestLimits;
  /** The file of the option `snapshot`. */
  readonly snapshot: string | undefined;
  /** The zone that identifies the cluster in metrics. */
  readonly zone: string;
  /** Selectors as text, empty to select everything. */
  readonly labels: string;
  readonly namespaceLabels: string;
  readonly origin: string;
}

/** Interval of the log message about the pending start. */
const WAIT_MESSAGE_MS = 500;

/** The API of a cluster, and the file with its last state. */
export class LiveCluster implements ClusterSource {
  readonly origin: string;
  readonly #options: LiveClusterOptions;
  readonly #cluster: WatchedCluster;
  readonly #site: LastingSite;
  #api: ApiSource | undefined;
  #snapshot: SnapshotFile | undefined;

  /** Starts nothing yet. */
  constructor(options: LiveClusterOptions, cluster: WatchedCluster, site: LastingSite) {
    this.origin = options.origin;
    this.#options = options;
    this.#cluster = cluster;
    this.#site = site;
  }

  get live(): ApiSource | undefined {
    return this.#api;
  }

  get loadedFrom(): string | undefined {
    return this.#snapshot?.loadedFrom;
  }

  async start(isFresh: boolean): Promise<void> {
    const { access, limits, snapshot, zone, labels, namespaceLabels } = this.#options;
    const { clock, random, log, metrics, machine, version } = this.#site;
    const { store, imports, reduce } = this.#cluster;
    this.#api = new ApiSource({
      ...{ store, imports, access, clock, log, metrics, limits, reduce, labels, namespaceLabels, zone },
      random: () => random.fraction(),
      environment: machine.environment,
      userAgent: `Portolan/${version} (${process.platform}/${process.arch})`,
      memory: await loadMemoryRelease(),
      thrift: new Thrift({ clock }),
    });
    if (snapshot !== undefined)
      this.#snapshot = await openSnapshot(snapshot, isFresh, this.#cluster, this.#site);
    // Connecting takes a turn of the event loop of its own.
    await nextTurn();
    this.#api.start();
  }

  showAs(zone: string): void {
    this.#api?.showAs(zone);
  }

  async stop(): Promise<void> {
    await this.#api?.stop();
    await this.#snapshot?.stop();
  }
}

/** Identifies the way of access and the snapshot file. Credentials cannot be derived from it. */
export function originOf(
  options: Omit<LiveClusterOptions, "zone" | "labels" | "namespaceLabels" | "origin">,
): string {
  const { access, limits, snapshot } = options;
  const text = JSON.stringify([access, limits, snapshot], (_, value) =>
    value instanceof Uint8Array ? [...value] : value,
  );
  return nodeCrypto().hash("sha256", text);
}

/** Loads the last state into the store, and updates the file from now on (the option `snapshot`). */
async function openSnapshot(
  file: string,
  isToBeLoaded: boolean,
  { store, imports, reduce }: WatchedCluster,
  { clock, log }: LastingSite,
): Promise<SnapshotFile> {
  const report = (words: string, error: unknown) =>
    log.warning(`snapshot ${file} ${words}: ${messageOf(error)}`);
  const snapshot = new SnapshotFile({
    file,
    store,
    imports,
    clock,
    reduce,
    onError: (error) => report("cannot be written", error),
  });
  try {
    if (!isToBeLoaded) return snapshot;
    const { objects, unusable, written } = await snapshot.load();
    log.info(
      `answering from the snapshot of ${written} until the API is listed: ${objects} ${objects === 1 ? "object" : "objects"}`,
    );
    if (unusable > 0)
      log.warning(`snapshot ${file}: ${unusable} ${unusable === 1 ? "line is" : "lines are"} unusable`);
  } catch (error) {
    // At the very first start the file does not exist yet.
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    if (!isMissing) report("cannot be used", error);
  } finally {
    snapshot.keep();
  }
  return snapshot;
}

/**
 * Waits for the first lists, for as long as the options say, or until `stopped` resolves. Logs the messages of
 * CoreDNS during the wait.
 */
export async function waitForCluster(
  cluster: WatchedCluster,
  timeoutMs: number,
  stopped: Promise<void>,
  site: Pick<Site, "clock" | "log">,
): Promise<void> {
  if (cluster.isSynced) return;
  const { clock, log } = site;
  const timedOut = Promise.withResolvers<void>();
  const timeout = clock.after(timeoutMs, timedOut.resolve);
  const reminder = clock.every(WAIT_MESSAGE_MS, () =>
    log.info("waiting for Kubernetes API before starting server"),
  );
  // Commands that query without listening have no socket, and the clock's timers do not keep a process alive: it
  // would exit during the wait.
  const alive = setInterval(() => undefined, WAIT_MESSAGE_MS);
  const isOver = await Promise.race([
    cluster.whenSynced(),
    timedOut.promise,
    stopped.then(() => true as const),
  ]);
  clearInterval(alive);
  timeout.cancel();
  reminder.cancel();
  if (cluster.isSynced || isOver === true) return;
  log.warning("starting server with unsynced Kubernetes API");
  log.warning(`not listed yet: ${cluster.source?.live?.awaited.join(", ")}`);
}
