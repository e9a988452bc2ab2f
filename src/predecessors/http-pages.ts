/** Serves a few pages over HTTP, for commands without another HTTP interface. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { isWildcardHost } from "../lib/net/listen-address.ts";
import { messageOf } from "../lib/text/message-of.ts";

export interface Page {
  readonly status: number;
  readonly body: string;
  /** Default: `text/plain; charset=utf-8`. */
  readonly contentType?: string;
}

/** @param path without query; returns `undefined` for an unknown path */
export type PageFinder = (path: string) => Page | undefined | Promise<Page | undefined>;

export class HttpPages {
  readonly #find: PageFinder;
  #server: Server | undefined;

  constructor(find: PageFinder) {
    this.#find = find;
  }

  /**
   * @param host empty, `0.0.0.0` and `::` all mean every address of both families
   * @returns the port in use
   * @throws if the address cannot be used
   */
  async listen(host: string, port: number): Promise<number> {
    const server = createServer((request, response) => {
      const path = (request.url ?? "/").replace(/\?.*$/s, "");
      void this.#answer(path).then(({ status, body, contentType = "text/plain; charset=utf-8" }) => {
        response.writeHead(status, { "content-type": contentType });
        response.end(body);
      });
    });
    // Without a host, Node listens on both families, or only on IPv4 on a machine without IPv6.
    server.listen({ port, ...(!isWildcardHost(host) && { host }) });
    await once(server, "listening");
    this.#server = server;
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : port;
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  }

  async #answer(path: string): Promise<Page> {
    try {
      return (await this.#find(path)) ?? { status: 404, body: "404 page not found\n" };
    } catch (error) {
      return { status: 500, body: `${messageOf(error)}\n` };
    }
  }
}
