import { formatGoDuration } from "../../lib/time/duration.ts";
import type { HttpHandler, PluginInstance, Site } from "../../plugin/index.ts";
import { SelfCheck } from "./self-check.ts";

export interface HealthConfig {
  readonly address: string;
  /** Milliseconds. */
  readonly lameduck: number;
}

const PATH = "/health";

export class Health implements PluginInstance {
  readonly #config: HealthConfig;
  readonly #site: Site;
  #check: SelfCheck | undefined;

  constructor(config: HealthConfig, site: Site) {
    this.#config = config;
    this.#site = site;
  }

  async start(): Promise<void> {
    const { address } = this.#config;
    const served = this.#site.shared("addresses", () => new Set<string>());
    if (served.has(address)) return;
    served.add(address);
    const endpoint = await this.#site.http.serve(address, PATH, answerOk);
    this.#check = new SelfCheck(endpoint, `http://${address}${PATH}`, PATH, this.#site);
  }

  started(): void {
    this.#check?.start();
  }

  async drain(): Promise<void> {
    const { lameduck } = this.#config;
    if (lameduck === 0) return;
    const { clock, log } = this.#site;
    log.info(`Going into lameduck mode for ${formatGoDuration(lameduck)}`);
    await new Promise<void>((resolve) => clock.after(lameduck, resolve));
  }

  stop(): void {
    this.#check?.stop();
  }
}

const answerOk: HttpHandler = (_request, response) => {
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end("OK");
};
