import type { HttpHandler, Logger, PluginInstance, Site } from "../../plugin/index.ts";

export interface ReadyConfig {
  readonly address: string;
  readonly monitor: "until-ready" | "continuously";
}

const PATH = "/ready";

/** The readiness of one server block, reported together with that of the other blocks at the same address. */
export class Ready implements PluginInstance {
  readonly #config: ReadyConfig;
  readonly #site: Site;
  readonly #endpoint: ReadyEndpoint;

  constructor(config: ReadyConfig, site: Site) {
    this.#config = config;
    this.#site = site;
    const endpoints = site.shared("endpoints", () => new Map<string, ReadyEndpoint>());
    const endpoint = endpoints.get(config.address) ?? new ReadyEndpoint(site.log);
    endpoints.set(config.address, endpoint);
    endpoint.add(new ReadyBlock(site, config.monitor === "until-ready"));
    this.#endpoint = endpoint;
  }

  async start(): Promise<void> {
    if (this.#endpoint.served) return;
    this.#endpoint.served = true;
    await this.#site.http.serve(this.#config.address, PATH, this.#endpoint.handle);
  }

  async drain(): Promise<void> {
    this.#endpoint.shuttingDown = true;
  }
}

/** The endpoint of one address. */
class ReadyEndpoint {
  served = false;
  shuttingDown = false;
  readonly #blocks: ReadyBlock[] = [];
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  add(block: ReadyBlock): void {
    this.#blocks.push(block);
  }

  readonly handle: HttpHandler = (request, response) => {
    const [status, text] = this.#state();
    const body = isVerbose(request.url) ? [text, ...this.#details(), ""].join("\n") : text;
    response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(body);
  };

  /** The plugins' status, one line each. */
  #details(): string[] {
    return [...new Set(this.#blocks.flatMap((block) => block.details()))];
  }

  #state(): readonly [number, string] {
    if (this.shuttingDown) return [503, "Shutting down"];
    const waitingFor = new Set(this.#blocks.flatMap((block) => block.notReady()));
    if (waitingFor.size === 0) return [200, "OK"];
    const names = [...waitingFor].sort().join(",");
    this.#log.info(`Plugins not ready: "${names}"`);
    return [503, names];
  }
}

/** `/ready?verbose`, as in Kubernetes' own servers. */
function isVerbose(url: string | undefined): boolean {
  const query = url?.split("?", 2)[1];
  return query !== undefined && new URLSearchParams(query).has("verbose");
}

class ReadyBlock {
  readonly #site: Site;
  readonly #untilReady: boolean;
  /** Plugins that were ready once and are not polled again. */
  readonly #done = new Set<PluginInstance>();

  constructor(site: Site, untilReady: boolean) {
    this.#site = site;
    this.#untilReady = untilReady;
  }

  /** Names of the plugins that are not ready now. */
  notReady(): string[] {
    const names: string[] = [];
    for (const { name, instance } of this.#site.block.plugins()) {
      if (instance.unfit?.()) {
        names.push(name);
        continue;
      }
      if (instance.ready === undefined || this.#done.has(instance)) continue;
      if (!instance.ready()) names.push(name);
      else if (this.#untilReady) this.#done.add(instance);
    }
    return names;
  }

  /** The status lines of its plugins. */
  details(): string[] {
    return this.#site.block
      .plugins()
      .flatMap(({ name, instance }) => instance.describeState?.().map((line) => `${name} ${line}`) ?? []);
  }
}
