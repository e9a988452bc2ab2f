import type { MeshHost } from "../../kubernetes/objects/objects.ts";
import type { ServiceEntryTable } from "../../kubernetes/store/mesh/service-entry-table.ts";
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import type { Clock, Logger, Timer } from "../../plugin/index.ts";

/** Milliseconds between two reports. Istio's plugin logged all mappings this often, changed or not. */
const INTERVAL = 5_000;
/** Bound for the hosts in one report. */
const MAX_LINES = 100;

/** Logs changes in the words of Istio's plugin, which scripts look for. */
export class MappingLog {
  readonly #table: ServiceEntryTable;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #unlisten: () => void;
  /** The latest mapping of each host, as log lines. */
  readonly #lines = new Map<string, string>();
  #timer: Timer | undefined;
  #saidAt = Number.NEGATIVE_INFINITY;

  constructor(table: ServiceEntryTable, clock: Clock, log: Logger) {
    this.#table = table;
    this.#clock = clock;
    this.#log = log;
    this.#unlisten = table.onChange((host) => this.#changed(host));
    if (table.isSynced) return;
    void table.whenSynced().then(() => this.#schedule());
  }

  stop(): void {
    this.#unlisten();
    this.#timer?.cancel();
  }

  #changed({ name, isWildcard, addresses }: MeshHost): void {
    const host = `${isWildcard ? "." : ""}${name}`;
    // A removed host has no addresses.
    if (addresses.length === 0) this.#lines.delete(host);
    else if (this.#lines.size < MAX_LINES)
      this.#lines.set(host, `adding DNS mapping: ${host}->[${addresses.map(formatIpAddress).join(" ")}]`);
    if (this.#table.isSynced) this.#schedule();
  }

  #schedule(): void {
    const wait = Math.max(this.#saidAt + INTERVAL - this.#clock.now(), 0);
    this.#timer ??= this.#clock.after(wait, () => this.#say());
  }

  #say(): void {
    this.#timer = undefined;
    this.#saidAt = this.#clock.now();
    this.#log.info(`Have ${this.#table.entries} service entries`);
    for (const line of this.#lines.values()) this.#log.info(line);
    this.#lines.clear();
  }
}
