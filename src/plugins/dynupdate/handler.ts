import type { Offer } from "../../plugin/contract/service.ts";
import {
  Fallthrough,
  type Handler,
  type PlacedPlugin,
  type PluginInstance,
  SetupError,
  type Site,
  type TransferSource,
} from "../../plugin/index.ts";
import { FileZone, isMissing } from "../../zones/files/served-file.ts";
import { ZoneService } from "../../zones/serving/zone-service.ts";
import { ZONE_UPDATES, ZoneUpdates } from "../../zones/taking/zone-updates.ts";
import { permissionsOf, UNSUPPORTED_TYPES } from "../../zones/updates/allow-rules.ts";
import { hasRoom, sizeOfZone, type UpdatePolicy } from "../../zones/updates/update-policy.ts";
import type { DynUpdateConfig } from "./config.ts";

interface SeededZone {
  readonly zone: FileZone;
  /** As the Corefile names it. */
  readonly seed: string;
  readonly policy: UpdatePolicy;
}

export class DynamicZones implements PluginInstance {
  readonly handle: Handler;
  readonly handleUpdate: Handler;
  readonly transferSource: TransferSource;
  readonly services: readonly Offer<unknown>[];
  readonly #service: ZoneService;
  readonly #updates: ZoneUpdates;
  readonly #zones: readonly SeededZone[];
  readonly #isLeader: boolean;

  constructor(lines: readonly DynUpdateConfig[], site: Site) {
    this.#isLeader = site.feed.role === "leader";
    const service = new ZoneService(this, site, Fallthrough.none);
    this.#service = service;
    this.handle = service.handle;
    this.transferSource = service;
    this.#updates = new ZoneUpdates(site);
    this.#zones = lines.map((line) => {
      const seed = line.file ?? "";
      const zone = new FileZone({
        service,
        site,
        origin: line.zone,
        file: site.resolvePath(seed),
        reload: 0,
        byMtime: false,
      });
      service.table.add(zone.served);
      const policy: UpdatePolicy = {
        permissions: permissionsOf(line.allow, line.zone),
        maxRecords: line.max_records,
        maxOctets: line.max_bytes,
        maxUpdateRecords: line.max_update_records,
        unsupported: UNSUPPORTED_TYPES,
      };
      zone.dynamic = this.#updates.add(zone, service, {
        journal: line.database === undefined ? undefined : site.resolvePath(line.database),
        isWhole: line.database !== undefined,
        policy,
        needsKeys: false,
      });
      return { zone, seed, policy };
    });
    this.#updates.receive(service);
    this.handleUpdate = this.#updates.handle;
    this.services = [ZONE_UPDATES.offer(this.#updates)];
  }

  inherit(predecessors: readonly PlacedPlugin[]): void {
    for (const former of ZONE_UPDATES.among(predecessors)) this.#updates.inherit(former);
  }

  started(): void {
    this.#updates.adopt();
  }

  async examine(): Promise<void> {
    this.#updates.onlyLook();
    await this.start();
    await this.stop();
  }

  async start(): Promise<void> {
    // A follower has its zones from the leader.
    if (!this.#isLeader) return;
    for (const { zone, seed, policy } of this.#zones) {
      try {
        await zone.load();
      } catch (error) {
        if (isMissing(error))
          throw new SetupError(`opening zone file "${seed}": open ${seed}: no such file or directory`);
        throw new SetupError(error instanceof Error ? error.message : String(error));
      }
      const { zone: loaded } = zone.served;
      if (loaded !== undefined && !hasRoom(sizeOfZone(loaded), policy))
        throw new SetupError(`zone file "${seed}" exceeds configured limits`);
    }
  }

  stop(): Promise<void> {
    for (const { zone } of this.#zones) zone.stop();
    this.#service.stop();
    return this.#updates.stop();
  }

  describeState(): readonly string[] {
    return this.#zones.map(({ zone }) => zone.describe());
  }
}
