import type { Name } from "../../dns/name.ts";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import type { SearchPathSource } from "../../plugin/contract/search-path.ts";
import { type PluginInstance, SetupError, type Site } from "../../plugin/index.ts";
import { parseSearchList } from "../../upstream/config/resolv-conf.ts";
import type { AutopathConfig } from "./config.ts";
import { SearchWalk } from "./search-walk.ts";

/** One directive: finds the source of search paths in `start`. */
export class Autopath implements PluginInstance {
  readonly handle: SearchWalk["handle"];
  readonly #config: AutopathConfig;
  readonly #site: Site;
  readonly #walk: SearchWalk;

  constructor(config: AutopathConfig, site: Site) {
    this.#config = config;
    this.#site = site;
    this.#walk = new SearchWalk(config.zones, site.metrics);
    this.handle = this.#walk.handle;
  }

  examine(): Promise<void> {
    return this.start();
  }

  async start(): Promise<void> {
    const { source } = this.#config;
    if ("file" in source) this.#walk.source = await this.#read(source.file);
    else this.#walk.source = this.#find(source.plugin);
  }

  #find(name: string): SearchPathSource | undefined {
    const { block, log } = this.#site;
    const neighbour = block.plugins().find((placed) => placed.name === name);
    if (neighbour === undefined) {
      log.warning(`there is no '${name}' in this server block: autopath does nothing`);
      return undefined;
    }
    const found = neighbour.instance.searchPathSource;
    if (found === undefined) throw new SetupError(`${name} does not implement the AutoPather interface`);
    const problem = found.wantSearchPaths?.();
    if (problem !== undefined) log.warning(`autopath does nothing: ${problem}`);
    return found;
  }

  async #read(file: string): Promise<SearchPathSource> {
    const path = this.#site.resolvePath(file);
    const names = await readSearchList(path);
    if (names.length === 0) this.#site.log.warning(`"${path}" has no search list: autopath does nothing`);
    return { searchPath: () => names };
  }
}

async function readSearchList(path: string): Promise<readonly Name[]> {
  try {
    return parseSearchList(await readTextFile(path));
  } catch (error) {
    throw new SetupError(`failed to parse "${path}": ${fileFault(error)}`);
  }
}
