/** exechealthz: pages that show whether commands succeed (docs/spec/kube-dns.md#exechealthz). */
import type { Clock } from "../../lib/time/clock.ts";
import { HttpPages, type Page } from "../http-pages.ts";
import { ExecProbe } from "./exec-probe.ts";

export interface ExechealthzOptions {
  /** Pairs of command and path. */
  readonly probes: readonly { readonly command: string; readonly path: string }[];
  readonly port: number;
  /** Milliseconds. */
  readonly period: number;
  readonly latency: number;
  readonly showsOutput: boolean;
  readonly clock: Clock;
  readonly finished: (path: string, error: string) => void;
  /** Called for a request to `/quit`. */
  readonly quit: () => void;
}

export class Exechealthz {
  readonly #options: ExechealthzOptions;
  readonly #probes: readonly ExecProbe[];
  readonly #pages: HttpPages;

  constructor(options: ExechealthzOptions) {
    this.#options = options;
    this.#probes = options.probes.map((probe) => new ExecProbe({ ...options, ...probe }));
    this.#pages = new HttpPages((path) => this.#page(path));
  }

  /** @returns the port in use */
  async start(): Promise<number> {
    const port = await this.#pages.listen("0.0.0.0", this.#options.port);
    for (const probe of this.#probes) probe.start();
    return port;
  }

  async stop(): Promise<void> {
    for (const probe of this.#probes) probe.stop();
    await this.#pages.close();
  }

  #page(path: string): Page | undefined {
    const probe = this.#probes.find((each) => each.path === path);
    if (probe !== undefined) return probe.page();
    if (path === "/quit") {
      this.#options.quit();
      return { status: 200, body: "" };
    }
    if (path !== "/") return undefined;
    const links = [...this.#probes.map((each) => each.path), "/quit"].map(
      (each) => `<li><a href="${escapeHtml(each)}">${escapeHtml(each)}</a></li>`,
    );
    return {
      status: 200,
      body: `<ul>\n${links.join("\n")}\n</ul>\n`,
      contentType: "text/html; charset=utf-8",
    };
  }
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
