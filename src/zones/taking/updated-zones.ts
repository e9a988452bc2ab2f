/** Shared by plugins whose zones begin as files and may accept updates. */
import type { Handler } from "../../plugin/chain/handler.ts";
import type { PlacedPlugin, PluginFault, PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import type { Offer } from "../../plugin/contract/service.ts";
import type { Site } from "../../plugin/contract/site.ts";
import type { TransferSource } from "../../plugin/contract/transfer.ts";
import type { Fallthrough } from "../../plugin/query/zones.ts";
import type { FileZone } from "../files/served-file.ts";
import { faultsOfZones } from "../serving/zone-faults.ts";
import { ZoneService } from "../serving/zone-service.ts";
import { ZONE_UPDATES, ZoneUpdates } from "./zone-updates.ts";

export abstract class UpdatedZones implements PluginInstance {
  readonly handle: Handler;
  readonly transferSource: TransferSource;
  readonly services: readonly Offer<unknown>[];
  protected readonly service: ZoneService;
  protected readonly updates: ZoneUpdates;
  /** The zones that this thread reads. */
  protected abstract readonly zones: readonly FileZone[];

  constructor(site: Site, fallthrough: Fallthrough) {
    const service = new ZoneService(this, site, fallthrough);
    this.service = service;
    this.handle = service.handle;
    this.transferSource = service;
    this.updates = new ZoneUpdates(site);
    this.services = [ZONE_UPDATES.offer(this.updates)];
  }

  inherit(predecessors: readonly PlacedPlugin[]): void {
    for (const former of ZONE_UPDATES.among(predecessors)) this.updates.inherit(former);
  }

  started(): void {
    this.updates.adopt();
  }

  async examine(): Promise<void> {
    this.updates.onlyLook();
    await this.start();
    await this.stop();
  }

  abstract start(): Promise<void>;

  stop(): Promise<void> {
    for (const zone of this.zones) zone.stop();
    this.service.stop();
    return this.updates.stop();
  }

  describeState(): readonly string[] {
    return this.zones.map((zone) => zone.describe());
  }

  faults(): readonly PluginFault[] {
    return faultsOfZones(this.zones);
  }
}
