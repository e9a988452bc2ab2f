/**
 * Watched ServiceEntries. They outlive a configuration: a reload with the same options takes them over, and nothing
 * is listed again.
 */
import { resolveManifestPath } from "../../kubernetes/api/source-options.ts";
import {
  logManifestMended,
  logManifestProblem,
  orSetupError,
} from "../../kubernetes/manifests/manifest-setup.ts";
import { ManifestSource } from "../../kubernetes/manifests/manifest-source.ts";
import type { ReduceOptions } from "../../kubernetes/objects/reduce.ts";
import type { ServiceEntryRules } from "../../kubernetes/objects/reduce-service-entries.ts";
import { SharedValues } from "../../kubernetes/objects/shared-values.ts";
import { ServiceEntryTable } from "../../kubernetes/store/mesh/service-entry-table.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import { ServiceKey, type Site } from "../../plugin/index.ts";
import type { IstioConfig } from "./config.ts";
import type { EntrySource } from "./entry-source.ts";

/** The key under which a reload finds them. */
export const WATCHED_ENTRIES = new ServiceKey<WatchedEntries>("istio/entries");

export class WatchedEntries {
  readonly table: ServiceEntryTable;
  /** Identifies a set of entries. Credentials cannot be derived from it. */
  readonly origin: string;
  readonly #source: EntrySource;
  #users = 0;

  private constructor(table: ServiceEntryTable, origin: string, source: EntrySource) {
    this.table = table;
    this.origin = origin;
    this.#source = source;
  }

  /** Starts nothing yet. @throws SetupError if the options lead to no cluster */
  static async plan(config: IstioConfig, rules: ServiceEntryRules, site: Site): Promise<WatchedEntries> {
    const { clock, random, log, metrics, machine, version } = site;
    // Without its block: a reference to a site retains all plugins of its configuration.
    const lasting = { clock, random, log, metrics, machine, version };
    const table = new ServiceEntryTable(clock);
    const reduce: ReduceOptions = { serviceEntries: rules, shared: new SharedValues() };
    const originOf = (...place: readonly unknown[]): string => digest([rules, ...place]);
    if (config.manifests.length > 0) {
      const paths = config.manifests.map((path) => resolveManifestPath(path, site));
      return new WatchedEntries(
        table,
        originOf("files", paths),
        entriesOfManifests(table, paths, reduce, lasting),
      );
    }
    // Loaded here because a configuration without a cluster does not need it.
    const { findCluster } = await import("../../kubernetes/api/access/find-cluster.ts");
    const { LiveEntries } = await import("./live-entries.ts");
    const access = await findCluster(config, site);
    return new WatchedEntries(table, originOf(access), new LiveEntries(table, access, reduce, lasting));
  }

  /** Registers a configuration. @throws SetupError if the source cannot start */
  async hold(): Promise<void> {
    if (this.#users++ === 0) await this.#source.start();
  }

  /** Unregisters a configuration; the last one ends the watch. */
  async letGo(): Promise<void> {
    if (--this.#users === 0) await this.#source.stop();
  }

  describe(): string {
    return this.#source.describe();
  }
}

function entriesOfManifests(
  table: ServiceEntryTable,
  paths: readonly string[],
  reduce: ReduceOptions,
  { clock, log }: Pick<Site, "clock" | "log">,
): EntrySource {
  const source = new ManifestSource({
    store: new ClusterStore({ clock, kinds: [] }),
    serviceEntries: table,
    paths,
    clock,
    reduce,
    onProblem: (problem) => logManifestProblem(problem, log),
    onMended: (path) => logManifestMended(path, log),
  });
  return {
    start: () => orSetupError(() => source.start()),
    stop: async () => source.stop(),
    describe: () => "service entries: from manifests",
  };
}

function digest(value: unknown): string {
  const text = JSON.stringify(value, (_, part) => (part instanceof Uint8Array ? [...part] : part));
  return nodeCrypto().hash("sha256", text);
}
