/** The open sockets of one listen point. */
import type { Scheme } from "../../corefile/server-key.ts";
import type { BlockSettings } from "../../plugin/contract/site.ts";
import type { Transport } from "../../transports/transport.ts";
import { socketsOverlap } from "../configuration/listen-places.ts";
import type { DnsListener } from "../serving/dns-listener.ts";
import type { ListenPoint } from "./generation.ts";

/**
 * The open sockets of one label. They outlive configurations, and refer only to the settings in force and the service
 * of `listener`.
 */
export class OpenListener {
  readonly scheme: Scheme;
  readonly host: string;
  readonly listener: DnsListener;
  settings: BlockSettings;
  /** The place in the Corefile in force, for messages. */
  place: string;
  /** Whether other data planes of the server listen beside it, at this address or an overlapping one. */
  isShared = false;
  /**
   * The number of configurations being prepared for which it shares its port: one may begin before the last has
   * ended.
   */
  borrowers = 0;
  transports: readonly Transport[] = [];

  constructor(listener: DnsListener, { scheme, host, settings, place }: ListenPoint) {
    this.listener = listener;
    this.scheme = scheme;
    this.host = host;
    this.settings = settings;
    this.place = place;
  }

  /** The real port, also where the system chose it. */
  get port(): number {
    return this.transports[0]?.port ?? 0;
  }

  /** Closes its sockets: open connections are answered until they fall silent. */
  async fadeOut(): Promise<void> {
    const patience = this.settings.idleTimeout;
    await Promise.all(
      this.transports.map((transport) => {
        if (transport.fadeOut !== undefined) return transport.fadeOut(patience);
        // Queries that have arrived are answered.
        transport.pause();
        return transport.close();
      }),
    );
  }

  serve({ service, settings, place }: ListenPoint): void {
    this.listener.service = service;
    this.settings = settings;
    this.place = place;
    for (const transport of this.transports) transport.settingsChanged?.();
  }

  share(on: boolean): boolean {
    return this.transports.map((transport) => transport.share?.(on) === true).every(Boolean);
  }
}

/** Listeners that share their ports while a configuration is put into force. */
export class Lending {
  readonly #lenders = new Set<OpenListener>();

  add(open: OpenListener): void {
    if (this.#lenders.has(open)) return;
    this.#lenders.add(open);
    open.borrowers++;
  }

  has(open: OpenListener): boolean {
    return this.#lenders.has(open);
  }

  every(holds: (open: OpenListener) => boolean): boolean {
    return [...this.#lenders].every(holds);
  }

  /** @param keepsSharing whether others stay beside the listener */
  end(keepsSharing: (open: OpenListener) => boolean): void {
    for (const open of this.#lenders) {
      open.borrowers--;
      if (open.borrowers === 0 && !keepsSharing(open)) open.share(false);
    }
    this.#lenders.clear();
  }
}

/** Listen points of one configuration that share a port. */
export class Neighbours {
  readonly #byPort = new Map<number, ListenPoint[]>();

  constructor(points: readonly ListenPoint[]) {
    for (const point of points) {
      // The system picks a new port for each port 0.
      if (point.port === 0) continue;
      const others = this.#byPort.get(point.port);
      if (others === undefined) this.#byPort.set(point.port, [point]);
      else others.push(point);
    }
  }

  of(point: ListenPoint): ListenPoint[] {
    const others = this.#byPort.get(point.port) ?? [];
    return others.filter((other) => other !== point && socketsOverlap(other, point));
  }
}
