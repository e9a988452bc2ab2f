/**
 * The zones of a plugin with a back end: loaded, kept up to date, answered for and transferred. Shared by `nomad`, `route53`,
 * `azure` and `clouddns`.
 */
import type { Name } from "../../dns/name.ts";
import type { Handler } from "../../plugin/chain/handler.ts";
import { SetupError } from "../../plugin/contract/define-plugin.ts";
import type { PlacedPlugin, PluginFault, PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import type { Site } from "../../plugin/contract/site.ts";
import type { TransferSource } from "../../plugin/contract/transfer.ts";
import type { Fallthrough } from "../../plugin/query/zones.ts";
import { faultsOfZones } from "../serving/zone-faults.ts";
import { ZoneService } from "../serving/zone-service.ts";
import { BackedZone } from "./backed-zone.ts";
import type { ZoneSource } from "./zone-source.ts";

export interface BackedZonesOptions {
  readonly site: Site;
  readonly fallthrough: Fallthrough;
  /** Of several zones with the same name, the first that has the queried name answers. */
  readonly zones: readonly { readonly apex: Name; readonly source: ZoneSource }[];
  /** Milliseconds: see {@link BackedZone}. */
  readonly refresh: number;
  /** Prefix of the reason when a start fails. Without it the server starts, and is not ready until all zones are loaded. */
  readonly startFailure?: string;
  /** Wraps the handler, for additional work on queries. */
  around?(handler: Handler): Handler;
  /** Checks the files that the start needs. Throwing refuses the start. */
  examine?(): Promise<void>;
  /** Connects to the back end, before anything is listed. Throwing refuses the start. */
  open?(): Promise<void>;
  close?(): void | Promise<void>;
}

/** Milliseconds that a reload waits for zones that may come later. */
const LONGEST_WARM_UP = 5_000;

export class BackedZones implements PluginInstance {
  readonly handle: Handler;
  readonly transferSource: TransferSource;
  readonly service: ZoneService;
  readonly #options: BackedZonesOptions;
  readonly #zones: readonly BackedZone[];
  #former: readonly BackedZone[] = [];

  constructor(options: BackedZonesOptions) {
    const { site, fallthrough, refresh } = options;
    this.#options = options;
    const service = new ZoneService(this, site, fallthrough, false);
    this.service = service;
    this.handle = options.around?.(service.handle) ?? service.handle;
    this.transferSource = service;
    const passedOver = site.metrics.gauge({
      name: "portolan_zone_passed_over_records",
      help: "Malformed records in the last listing of a zone.",
      labels: ["zone"],
    });
    this.#zones = options.zones.map(
      ({ apex, source }) => new BackedZone({ service, site, apex, source, refresh, passedOver }),
    );
    for (const { served } of this.#zones) {
      const first = service.table.get(served.apex);
      if (first === undefined) service.table.add(served);
      else first.behind.push(served);
    }
  }

  inherit(predecessors: readonly PlacedPlugin[]): void {
    this.#former = predecessors.flatMap(({ instance }) =>
      instance instanceof BackedZones ? instance.#zones : [],
    );
  }

  async examine(): Promise<void> {
    await this.#options.examine?.();
  }

  async start(): Promise<void> {
    const { startFailure } = this.#options;
    try {
      await this.#options.open?.();
      await this.#takeOver();
      if (startFailure !== undefined) {
        for (const zone of this.#zones) if (zone.served.zone === undefined) await zone.load();
      }
    } catch (error) {
      if (error instanceof SetupError || !(error instanceof Error)) throw error;
      throw new SetupError(`${startFailure ?? "cannot start"}: ${error.message}`);
    } finally {
      this.#former = [];
    }
    for (const zone of this.#zones) zone.watch();
  }

  /** A reload waits for new zones. */
  async warmUp(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#options.site.clock.after(LONGEST_WARM_UP, resolve);
    await Promise.race([promise, Promise.all(this.#zones.map((zone) => zone.loaded))]);
    timer.cancel();
  }

  /** Zones that were loaded once are served, whatever happens to the back end. */
  ready(): boolean {
    return this.#zones.every(({ served }) => served.zone !== undefined);
  }

  async stop(): Promise<void> {
    for (const zone of this.#zones) zone.stop();
    this.service.stop();
    await this.#options.close?.();
  }

  describeState(): readonly string[] {
    return this.#zones.map((zone) => zone.describe());
  }

  faults(): readonly PluginFault[] {
    return faultsOfZones(this.#zones);
  }

  async #takeOver(): Promise<void> {
    for (const zone of this.#zones) {
      const { apex } = zone.served;
      const former = this.#former.find(
        ({ served, source }) => served.apex.equals(apex) && source.identity === zone.source.identity,
      );
      if (former !== undefined) await zone.inherit(former);
    }
  }
}
