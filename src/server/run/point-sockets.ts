/** The sockets of one listen point, and their common port. */
import type { TransportName } from "../../plugin/message/endpoint.ts";
import { ListenError, type Transport } from "../../transports/transport.ts";
import type { ListenerPlace, SchemeServer } from "../serving/scheme-server.ts";

/** The place of the first data plane's sockets, and the transports that others can share. */
export interface ListenPlace {
  readonly port: number;
  readonly shared: readonly TransportName[];
}

/** Opens the sockets of one listen point: all or none. */
export class PointSockets {
  readonly #scheme: SchemeServer;
  readonly #place: ListenerPlace;

  constructor(scheme: SchemeServer, place: ListenerPlace) {
    this.#scheme = scheme;
    this.#place = place;
  }

  openAll(port: number, reusePort: boolean): Promise<Transport[]> {
    return this.#openEach(this.#scheme.transports, port, reusePort);
  }

  /** The sockets of a further data plane. */
  openBeside({ port, shared }: ListenPlace): Promise<Transport[]> {
    return this.#openEach(shared, port, true);
  }

  /** The sockets that others can share: as they are, or reopened for sharing. The port is known to be free. */
  async shareAll(alone: readonly Transport[]): Promise<Transport[]> {
    const open = new Set(alone);
    try {
      for (const transport of alone) {
        if (transport.share?.() === true) continue;
        open.delete(transport);
        await transport.close();
        open.add(
          await this.#scheme.open(transport.name, { port: transport.port, reusePort: true }, this.#place),
        );
      }
      return [...open];
    } catch (error) {
      await closeAll(open);
      throw error;
    }
  }

  async #openEach(names: readonly TransportName[], port: number, reusePort: boolean): Promise<Transport[]> {
    const open: Transport[] = [];
    try {
      for (const name of names) {
        const wish = { port: open[0]?.port ?? port, reusePort };
        open.push(await this.#scheme.open(name, wish, this.#place));
      }
      return open;
    } catch (error) {
      await closeAll(open);
      throw error;
    }
  }
}

export async function closeAll(transports: Iterable<Transport>): Promise<void> {
  await Promise.all(Array.from(transports, (transport) => transport.close()));
}

/** The port that the system gave the first socket may be taken for the next: then tries another port. */
export async function withFreePort(
  port: number,
  open: (port: number) => Promise<Transport[]>,
): Promise<Transport[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await open(port);
    } catch (error) {
      if (port !== 0 || attempt >= 10 || !(error instanceof ListenError) || error.code !== "EADDRINUSE")
        throw error;
    }
  }
}
