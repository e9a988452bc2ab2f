import { loadMemoryRelease } from "../../lib/memory-release.ts";
import {
  type Handler,
  type PluginInstance,
  SetupError,
  type Site,
  type TransferSource,
} from "../../plugin/index.ts";
import { FileZone, isMissing } from "../../zones/file-zone.ts";
import { ZoneFileError } from "../../zones/zone-file.ts";
import { ZoneService } from "../../zones/zone-service.ts";
import { type FileConfig, joinLines } from "./config.ts";

/** Below that there is nothing to be won. */
const MANY_RECORDS = 100_000;

export class FileZones implements PluginInstance {
  readonly handle: Handler;
  readonly transferSource: TransferSource;
  readonly #service: ZoneService;
  readonly #zones: readonly FileZone[];

  constructor(lines: readonly FileConfig[], site: Site) {
    const settings = joinLines(lines);
    const service = new ZoneService(this, site, settings.fallthrough);
    this.#service = service;
    this.handle = service.handle;
    this.transferSource = service;
    this.#zones = settings.zones.flatMap(({ file, zones, reload, byMtime }) =>
      zones.zones.map(
        (origin) => new FileZone({ service, site, origin, file: site.resolvePath(file), reload, byMtime }),
      ),
    );
    for (const { served } of this.#zones) service.table.add(served);
  }

  async examine(): Promise<void> {
    await this.start();
    this.stop();
  }

  /** As CoreDNS does it: a file that is no zone refuses the start, one that is not there yet is waited for. */
  async start(): Promise<void> {
    for (const zone of this.#zones) {
      try {
        await zone.load();
      } catch (error) {
        if (error instanceof ZoneFileError) throw new SetupError(error.message);
        if (!isMissing(error) || zone.reload === 0) throw new SetupError(describe(error, zone.file));
        zone.waitForFile();
      }
    }
    await this.#giveBackMemory();
    for (const zone of this.#zones) zone.watch();
  }

  /** Reading a large zone leaves much behind, and nobody is served yet: the time for it is now. */
  async #giveBackMemory(): Promise<void> {
    const records = this.#zones.reduce((sum, { served }) => sum + (served.zone?.recordCount ?? 0), 0);
    if (records >= MANY_RECORDS) (await loadMemoryRelease()).all();
  }

  stop(): void {
    for (const zone of this.#zones) zone.stop();
    this.#service.stop();
  }

  describeState(): readonly string[] {
    return this.#zones.map((zone) => zone.describe());
  }
}

function describe(error: unknown, file: string): string {
  if (isMissing(error)) return `open ${file}: no such file or directory`;
  return error instanceof Error ? error.message : String(error);
}
