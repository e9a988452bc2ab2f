import { messageOf } from "../../lib/text/message-of.ts";
import { type Handler, type PlacedPlugin, SetupError, type Site } from "../../plugin/index.ts";
import { loadMemoryRelease } from "../../runtime/memory-release.ts";
import { ZoneFileError } from "../../zones/files/parsed-file.ts";
import { FileZone, isMissing } from "../../zones/files/served-file.ts";
import { UpdatedZones } from "../../zones/taking/updated-zones.ts";
import { JournalError } from "../../zones/updates/update-journal.ts";
import { openPolicy } from "../../zones/updates/update-policy.ts";
import { type FileConfig, joinLines } from "./config.ts";

/** Smaller zones leave too little garbage to be worth it. */
const MANY_RECORDS = 100_000;

export class FileZones extends UpdatedZones {
  readonly handleUpdate: Handler | undefined;
  protected readonly zones: readonly FileZone[];
  readonly #site: Site;
  #isReload = false;

  constructor(lines: readonly FileConfig[], site: Site) {
    const settings = joinLines(lines);
    super(site, settings.fallthrough);
    const { service } = this;
    const perLine = settings.zones.map(({ file, zones, reload, byMtime }) =>
      zones.zones.map((origin) => {
        const options = { service, site, origin, file: site.resolvePath(file), reload, byMtime };
        return new FileZone({ ...options, mayBeginBelow: true });
      }),
    );
    const all = perLine.flat();
    for (const { served } of all) service.table.add(served);
    this.#site = site;
    const isLeader = site.feed.role === "leader";
    const taking = new Set<FileZone>();
    for (const [index, { permissions, journal }] of settings.zones.entries()) {
      const [zone] = perLine[index] ?? [];
      if (permissions.length === 0 || zone === undefined) continue;
      // A later line serves the zone from another file.
      if (service.table.get(zone.served.apex) !== zone.served) continue;
      taking.add(zone);
      zone.dynamic = this.updates.add(zone, service, {
        journal: site.resolvePath(journal),
        isWhole: false,
        policy: openPolicy(permissions),
        needsKeys: true,
      });
    }
    this.updates.receive(service);
    // A follower does not read the file of a zone that the leader updates.
    this.zones = isLeader ? all : all.filter((zone) => !taking.has(zone));
    this.handleUpdate = this.updates.isEmpty ? undefined : this.updates.handle;
  }

  override inherit(predecessors: readonly PlacedPlugin[]): void {
    this.#isReload = true;
    super.inherit(predecessors);
  }

  /** As in CoreDNS: an invalid zone file prevents the start, a missing one is waited for. */
  async start(): Promise<void> {
    if (!this.updates.isEmpty) this.updates.check(this.#site.block);
    for (const zone of this.zones) {
      try {
        await zone.load();
      } catch (error) {
        if (error instanceof JournalError) throw new SetupError(error.message);
        if (error instanceof ZoneFileError) throw new SetupError(error.message);
        if (!isMissing(error) || zone.reload === 0) throw new SetupError(describe(error, zone.file));
        zone.waitForFile();
      }
    }
    await this.#giveBackMemory();
    for (const zone of this.zones) zone.watch();
  }

  /**
   * Reading a large zone leaves garbage. At the start no queries are being served, so it is collected now; in a
   * reload that would delay queries.
   */
  async #giveBackMemory(): Promise<void> {
    if (this.#isReload) return;
    const records = this.zones.reduce((sum, { served }) => sum + (served.zone?.recordCount ?? 0), 0);
    if (records >= MANY_RECORDS) (await loadMemoryRelease()).all();
  }
}

function describe(error: unknown, file: string): string {
  if (isMissing(error)) return `open ${file}: no such file or directory`;
  return messageOf(error);
}
