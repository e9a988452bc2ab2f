import { fileFault } from "../../lib/files/file-fault.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type {
  Fallthrough,
  Handler,
  PluginFault,
  PluginInstance,
  Site,
  Timer,
  TransferSource,
  ZoneList,
} from "../../plugin/index.ts";
import { FileZone, isMissing } from "../../zones/files/served-file.ts";
import { type FoundZoneFile, findZoneFiles, type ZoneFolder } from "../../zones/files/zone-folder.ts";
import { faultsOfZones } from "../../zones/serving/zone-faults.ts";
import { ZoneService } from "../../zones/serving/zone-service.ts";
import type { FileNames } from "./config.ts";

export interface AutoConfig {
  readonly zones: ZoneList;
  readonly directory: { readonly path: string; readonly names: FileNames } | undefined;
  /** Milliseconds, 0 for never. */
  readonly reload: number;
  readonly fallthrough: Fallthrough;
}

/** A shorter interval would keep the server busy scanning. Milliseconds. */
const SHORTEST_RELOAD = 100;

export class AutoZones implements PluginInstance {
  readonly transferSource: TransferSource;
  readonly #config: AutoConfig;
  readonly #site: Site;
  readonly #service: ZoneService;
  readonly #folder: ZoneFolder | undefined;
  /** By origin in lower case. */
  readonly #zones = new Map<string, FileZone>();
  /** The last fault of each file, so that it is logged once. */
  #complaints = new Map<string, string>();
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(config: AutoConfig, site: Site) {
    this.#config = config;
    this.#site = site;
    this.#service = new ZoneService(this, site, config.fallthrough);
    this.transferSource = this.#service;
    const { directory } = config;
    this.#folder =
      directory === undefined
        ? undefined
        : { directory: site.resolvePath(directory.path), ...directory.names };
  }

  readonly handle: Handler = (query, next) => {
    const served = this.#service.find(query);
    // Only zones within the directive's zones are served; their apex decides, not the name in the query.
    if (served === undefined || this.#config.zones.matchQuery(query) === undefined) {
      if (this.#config.zones.matchQuery(query) === undefined) return next(query);
      return this.#service.passOn(query, next);
    }
    return this.#service.answer(served, query, next);
  };

  async examine(): Promise<void> {
    await this.#scan();
    this.stop();
  }

  async start(): Promise<void> {
    await this.#scan();
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    for (const zone of this.#zones.values()) zone.stop();
    this.#service.stop();
  }

  describeState(): readonly string[] {
    return Array.from(this.#zones.values(), (zone) => zone.describe());
  }

  faults(): readonly PluginFault[] {
    return faultsOfZones([...this.#zones.values()]);
  }

  #schedule(): void {
    const { reload } = this.#config;
    if (reload === 0 || this.#isStopped || this.#folder === undefined) return;
    this.#timer = this.#site.clock.after(Math.max(reload, SHORTEST_RELOAD), () => {
      void this.#scan().then(() => this.#schedule());
    });
  }

  async #scan(): Promise<void> {
    if (this.#folder === undefined) return;
    const complaints = new Map<string, string>();
    let found: readonly FoundZoneFile[];
    try {
      found = await findZoneFiles(this.#folder);
    } catch (error) {
      // A mount that is unavailable for a moment removes no zones.
      this.#complain(complaints, this.#folder.directory, describeFolderError(error, this.#folder.directory));
      this.#complaints = complaints;
      return;
    }
    const files = this.#chooseFiles(found, complaints);
    for (const [origin, zone] of this.#zones) {
      if (files.get(origin)?.file === zone.file) continue;
      zone.stop();
      this.#zones.delete(origin);
      if (files.has(origin)) continue;
      this.#service.remove(zone.served);
      this.#site.log.info(`Deleting zone \`${zone.served.spelled}'`);
    }
    for (const [origin, file] of files) {
      if (this.#isStopped) return;
      const known = this.#zones.get(origin);
      if (known === undefined) await this.#insert(origin, file, complaints);
      else await known.check();
    }
    this.#complaints = complaints;
  }

  /** The first file of each origin, in the order of the scan. */
  #chooseFiles(
    found: readonly FoundZoneFile[],
    complaints: Map<string, string>,
  ): ReadonlyMap<string, FoundZoneFile> {
    const files = new Map<string, FoundZoneFile>();
    for (const file of found) {
      const origin = file.origin.toLowerCase().toString();
      const first = files.get(origin);
      if (first === undefined) files.set(origin, file);
      else if (!file.isBehindLinks) {
        const text = `Multiple zone files match origin "${file.origin}": using "${first.file}" instead of "${file.file}"`;
        this.#complain(complaints, file.file, text);
      }
    }
    return files;
  }

  async #insert(
    origin: string,
    { file, origin: spelled }: FoundZoneFile,
    complaints: Map<string, string>,
  ): Promise<void> {
    const zone = new FileZone({
      service: this.#service,
      site: this.#site,
      origin: spelled,
      file,
      reload: this.#config.reload,
      byMtime: false,
    });
    try {
      await zone.load();
      if (this.#isStopped) return;
      this.#service.table.add(zone.served);
      this.#zones.set(origin, zone);
      this.#site.log.info(`Inserting zone \`${spelled}' from: ${file}`);
    } catch (error) {
      const reason = messageOf(error);
      // The previous file of a zone is replaced together with the zone.
      const former = this.#service.table.get(zone.served.apex);
      if (former !== undefined) this.#service.remove(former);
      this.#complain(complaints, file, `Parse zone \`${spelled}': ${reason}`);
    }
  }

  #complain(complaints: Map<string, string>, file: string, text: string): void {
    complaints.set(file, text);
    if (this.#complaints.get(file) !== text) this.#site.log.warning(text);
  }
}

function describeFolderError(error: unknown, directory: string): string {
  if (isMissing(error)) return `Directory does not exist: ${directory}`;
  return `Directory cannot be read: ${fileFault(error)}`;
}
