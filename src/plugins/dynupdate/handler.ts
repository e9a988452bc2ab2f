import { messageOf } from "../../lib/text/message-of.ts";
import { Fallthrough, type Handler, SetupError, type Site } from "../../plugin/index.ts";
import { FileZone, isMissing } from "../../zones/files/served-file.ts";
import { UpdatedZones } from "../../zones/taking/updated-zones.ts";
import { permissionsOf, UNSUPPORTED_TYPES } from "../../zones/updates/allow-rules.ts";
import { hasRoom, sizeOfZone, type UpdatePolicy } from "../../zones/updates/update-policy.ts";
import type { DynUpdateConfig } from "./config.ts";

interface SeededZone {
  readonly zone: FileZone;
  /** The path in the Corefile. */
  readonly seed: string;
  readonly policy: UpdatePolicy;
}

export class DynamicZones extends UpdatedZones {
  readonly handleUpdate: Handler;
  protected readonly zones: readonly FileZone[];
  readonly #seeded: readonly SeededZone[];
  readonly #isLeader: boolean;

  constructor(lines: readonly DynUpdateConfig[], site: Site) {
    super(site, Fallthrough.none);
    this.#isLeader = site.feed.role === "leader";
    const { service } = this;
    this.#seeded = lines.map((line) => {
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
      zone.dynamic = this.updates.add(zone, service, {
        journal: line.database === undefined ? undefined : site.resolvePath(line.database),
        isWhole: line.database !== undefined,
        policy,
        needsKeys: false,
      });
      return { zone, seed, policy };
    });
    this.zones = this.#seeded.map(({ zone }) => zone);
    this.updates.receive(service);
    this.handleUpdate = this.updates.handle;
  }

  async start(): Promise<void> {
    // A follower gets its zones from the leader.
    if (!this.#isLeader) return;
    for (const { zone, seed, policy } of this.#seeded) {
      try {
        await zone.load();
      } catch (error) {
        if (isMissing(error))
          throw new SetupError(`opening zone file "${seed}": open ${seed}: no such file or directory`);
        throw new SetupError(messageOf(error));
      }
      const { zone: loaded } = zone.served;
      if (loaded !== undefined && !hasRoom(sizeOfZone(loaded), policy))
        throw new SetupError(`zone file "${seed}" exceeds configured limits`);
    }
  }
}
