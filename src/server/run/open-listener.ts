/** The open sockets of one listen point. */
import type { Scheme } from "../../corefile/server-key.ts";
import type { BlockSettings } from "../../plugin/contract/site.ts";
import type { Transport } from "../../transports/transport.ts";
import { socketsOverlap } from "../configuration/listen-places.ts";
import type { DnsListener } from "../serving/dns-listener.ts";
import type { ListenPoint } from "./generation.ts";

/** What is open for one label. It outlives configurations: of them it holds the settings in force and what `listener` serves, no more. */
export class OpenListener {
  readonly scheme: Scheme;
  readonly host: string;
  readonly listener: DnsListener;
  settings: BlockSettings;
  /** Of the Corefile in force, for messages. */
  place: string;
  /** Others of the server's data planes listen beside it, here or at an address that overlaps. */
  isShared = false;
  /** Configurations being brought into force for which it lets others in: one may begin before the last has ended. */
  borrowers = 0;
  transports: readonly Transport[] = [];

  constructor(listener: DnsListener, { scheme, host, settings, place }: ListenPoint) {
    this.listener = listener;
    this.scheme = scheme;
    this.host = host;
    this.settings = settings;
    this.place = place;
  }

  /** The real one, where it was left to the system. */
  get port(): number {
    return this.transports[0]?.port ?? 0;
  }

  /** Closes its sockets: connections that are open are answered until they fall silent. */
  async fadeOut(): Promise<void> {
    const patience = this.settings.idleTimeout;
    await Promise.all(
      this.transports.map((transport) => {
        if (transport.fadeOut !== undefined) return transport.fadeOut(patience);
        // What has arrived is answered.
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

/** Listeners that let others stand beside them while a configuration is brought into force. */
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

  /** @param keepsSharing whether others stay beside it */
  end(keepsSharing: (open: OpenListener) => boolean): void {
    for (const open of this.#lenders) {
      open.borrowers--;
      if (open.borrowers === 0 && !keepsSharing(open)) open.share(false);
    }
    this.#lenders.clear();
  }
}

/** Listen points of one configuration that stand side by side on a port. */
export class Neighbours {
  readonly #byPort = new Map<number, ListenPoint[]>();

  constructor(points: readonly ListenPoint[]) {
    for (const point of points) {
      // Port 0 is another one each time.
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
