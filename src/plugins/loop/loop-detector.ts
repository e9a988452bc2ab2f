import { Name, NameError, RecordType } from "../../dns/index.ts";
import { reachableHost } from "../../plugin/contract/site.ts";
import { DROPPED, type Handler, type PluginInstance, type Site, type Timer } from "../../plugin/index.ts";
import { LoopProbe } from "./loop-probe.ts";

/** Milliseconds between two attempts, and after the last one. */
const RETRY = 1_000;
const PATIENCE = 30_000;

/** The probe itself is seen once; a resolver that repeats it once is not a loop. */
const HARMLESS_SIGHTINGS = 2;

/** The message from the data plane that probes to the others. */
interface Announcement {
  readonly name: string;
  /** The server's address in messages. */
  readonly address: string;
}

/**
 * Sends a query for a random name through this server. If the query returns repeatedly, there is a forwarding loop,
 * which every query would enter. After an answer or a time-out the handler only passes queries on.
 */
export class LoopDetector implements PluginInstance {
  readonly #site: Site;
  readonly #zone: Name;
  #active = false;
  #name: Name | undefined;
  #sightings = 0;
  #attempts = 0;
  /** This server's address in messages. */
  #address = "";
  #probe: LoopProbe | undefined;
  #timer: Timer | undefined;

  constructor(site: Site) {
    this.#site = site;
    this.#zone = site.block.zones[0] ?? Name.root;
    // One data plane probes. A looping query may arrive at any of them, so all of them count it (multisocket).
    site.feed.provide(() => (this.#active ? [this.#announcement()] : []));
    site.feed.receive((message) => this.#lookOut(message as Announcement | undefined));
  }

  started(): void {
    if (this.#site.feed.role === "follower") return;
    const { block, clock, log } = this.#site;
    const listener = block.listeners().find(({ label }) => label.startsWith(DNS_SCHEME));
    const target = listener?.address();
    const name = this.#probeName();
    if (listener === undefined || target === undefined || name === undefined) {
      log.debug(`no probe for zone "${this.#zone}": it has no DNS listener, or no room for two labels more`);
      return;
    }
    this.#name = name;
    this.#address = listener.label.slice(DNS_SCHEME.length);
    // A socket for all IPv6 addresses accepts no other.
    const host = this.#address.startsWith("[::]") ? "::1" : reachableHost(target.host);
    this.#probe = new LoopProbe({
      host,
      port: target.port,
      question: { name, type: RecordType.HINFO },
      random: this.#site.random,
      onAnswer: () => this.#disable(),
    });
    this.#active = true;
    this.#attempt();
    this.#timer = clock.every(RETRY, () => this.#attempt());
  }

  stop(): void {
    this.#disable();
  }

  readonly handle: Handler = (query, next) => {
    if (!this.#active || query.type !== RecordType.HINFO) return next(query);
    if (this.#name === undefined || !query.name.equals(this.#name)) return next(query);
    this.#sightings++;
    query.markOwn();
    query.trace?.note("the probe of loop", { sightings: this.#sightings });
    if (this.#sightings <= HARMLESS_SIGHTINGS) return next(query);
    const { address, port, family } = query.client;
    const client = family === 4 ? `${address}:${port}` : `[${address}]:${port}`;
    this.#disable();
    this.#site.control.fatal(
      `plugin/loop: Loop (${client} -> ${this.#address}) detected for zone "${this.#zone}": ` +
        "queries that this server forwards come back to it. Use resolvers in forward that do not query this server, " +
        "instead of a resolv.conf with a loopback address. " +
        `Query: "HINFO ${this.#name}"`,
    );
    return DROPPED;
  };

  #attempt(): void {
    if (this.#attempts >= PATIENCE / RETRY) {
      this.#disable();
      return;
    }
    this.#attempts++;
    // Sightings in an attempt without an answer do not count for the next one.
    this.#sightings = 0;
    this.#site.feed.publish(this.#announcement());
    this.#probe?.send();
  }

  #announcement(): Announcement {
    return { name: this.#name?.toString() ?? "", address: this.#address };
  }

  /** Called in a follower for each attempt; `undefined` ends it. */
  #lookOut(announcement: Announcement | undefined): void {
    this.#active = announcement !== undefined;
    if (announcement === undefined) return;
    this.#name = Name.parse(announcement.name);
    this.#address = announcement.address;
    this.#sightings = 0;
  }

  #disable(): void {
    if (this.#active) this.#site.feed.publish(undefined);
    this.#active = false;
    this.#timer?.cancel();
    this.#probe?.close();
  }

  #probeName(): Name | undefined {
    const { random } = this.#site;
    const number = (): string =>
      (((BigInt(random.unpredictable()) << 32n) | BigInt(random.unpredictable())) >> 2n).toString();
    try {
      return Name.fromLabels([number(), number()], this.#zone);
    } catch (error) {
      if (error instanceof NameError) return undefined;
      throw error;
    }
  }
}

const DNS_SCHEME = "dns://";
