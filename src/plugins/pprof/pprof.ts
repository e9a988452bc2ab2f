import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../../lib/text/message-of.ts";
import type { PluginInstance, Site } from "../../plugin/index.ts";
import { encodeProfile, type ProfileContent } from "./profile-writer.ts";
import { HeapSampler, profileCpu } from "./v8-profiles.ts";

const ROOT = "/debug/pprof/";
const DEFAULT_SECONDS = 30;
/** Bound for the length of a profile. */
const MAX_SECONDS = 600;

/** The endpoints of one server block; blocks with the same address share them. */
export class Pprof implements PluginInstance {
  readonly #address: string;
  readonly #site: Site;
  readonly #heap = new HeapSampler();
  #isFirst = false;
  #isProfiling = false;
  /** Ends the profile in progress. */
  #finish: (() => void) | undefined;

  constructor(address: string, site: Site) {
    this.#address = address;
    this.#site = site;
  }

  async start(): Promise<void> {
    const served = this.#site.shared("addresses", () => new Set<string>());
    this.#isFirst = !served.has(this.#address);
    if (!this.#isFirst) return;
    served.add(this.#address);
    await this.#heap.start();
    const { http } = this.#site;
    await http.serve(this.#address, ROOT, (_request, response) => sendPage(response));
    await http.serve(
      this.#address,
      `${ROOT}profile`,
      (request, response) => void this.#cpu(request, response),
    );
    for (const name of ["heap", "allocs"])
      await http.serve(this.#address, ROOT + name, (_request, response) => void this.#heapProfile(response));
    await http.serve(this.#address, `${ROOT}cmdline`, (_request, response) =>
      sendText(response, 200, process.argv.join("\0")),
    );
  }

  stop(): void {
    this.#finish?.();
    if (this.#isFirst) this.#heap.stop();
  }

  async #cpu(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const seconds = secondsOf(request.url ?? "");
    if (seconds === undefined) {
      sendText(response, 400, `seconds must be a number above 0 and at most ${MAX_SECONDS}\n`);
      return;
    }
    if (this.#isProfiling) {
      sendText(response, 500, "Could not enable CPU profiling: cpu profiling already in use\n");
      return;
    }
    this.#isProfiling = true;
    try {
      const { clock } = this.#site;
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#finish = resolve;
      const timer = clock.after(seconds * 1000, resolve);
      // The client closed the connection.
      response.on("close", resolve);
      const profile = await profileCpu(promise, clock.wallTime());
      timer.cancel();
      sendProfile(response, "profile", profile);
    } catch (error) {
      this.#fail(response, error);
    } finally {
      this.#isProfiling = false;
      this.#finish = undefined;
    }
  }

  async #heapProfile(response: ServerResponse): Promise<void> {
    try {
      sendProfile(response, "heap", await this.#heap.content(this.#site.clock.wallTime()));
    } catch (error) {
      this.#fail(response, error);
    }
  }

  #fail(response: ServerResponse, error: unknown): void {
    const reason = messageOf(error);
    this.#site.log.error(`no profile: ${reason}`);
    if (!response.headersSent) sendText(response, 500, `no profile: ${reason}\n`);
  }
}

function secondsOf(url: string): number | undefined {
  const given = new URL(url, "http://localhost").searchParams.get("seconds");
  const seconds = given === null ? DEFAULT_SECONDS : Number(given);
  return seconds > 0 && seconds <= MAX_SECONDS ? seconds : undefined;
}

function sendProfile(response: ServerResponse, name: string, content: ProfileContent): void {
  if (response.destroyed) return;
  response
    .writeHead(200, {
      "content-type": "application/octet-stream",
      "content-disposition": `attachment; filename="${name}"`,
      "x-content-type-options": "nosniff",
    })
    .end(encodeProfile(content));
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response
    .writeHead(status, { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" })
    .end(text);
}

function sendPage(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(PAGE);
}

const PAGE = `<!doctype html>
<html lang="en">
<head><title>/debug/pprof/</title></head>
<body>
<h1>/debug/pprof/</h1>
<table>
<caption>Profiles of this process</caption>
<tr><td><a href="profile?seconds=30">profile</a></td><td>CPU: where time goes. <code>seconds</code> says for how long, 30 unless given</td></tr>
<tr><td><a href="heap">heap</a></td><td>Memory in use within the heap of V8, by the place that allocated it</td></tr>
<tr><td><a href="allocs">allocs</a></td><td>The same as heap: V8 does not keep what was collected</td></tr>
<tr><td><a href="cmdline">cmdline</a></td><td>The command line</td></tr>
</table>
<p>Read them with <code>go tool pprof</code> or speedscope.</p>
</body>
</html>
`;
