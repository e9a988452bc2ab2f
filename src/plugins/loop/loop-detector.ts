import { Name, NameError, RecordType } from "../../dns/index.ts";
import { reachableHost } from "../../plugin/contract/site.ts";
import { DROPPED, type Handler, type PluginInstance, type Site, type Timer } from "../../plugin/index.ts";
import { LoopProbe } from "./loop-probe.ts";

/** Milliseconds between two attempts, and until the last of them is over. */
const RETRY = 1_000;
const PATIENCE = 30_000;

/** The probe itself is seen once; a resolver that asks a second time is no loop yet. */
const HARMLESS_SIGHTINGS = 2;

/** What the data plane that probes tells the others. */
interface Announcement {
  readonly name: string;
  /** Where the server listens, as messages show it. */
  readonly address: string;
}

/**
 * Sends a query for a name that nobody else knows through this server. Seen again and again, it is going round in circles, and every query
 * would. Once there was an answer, or patience is over, the handler only passes queries on.
 */
export class LoopDetector implements PluginInstance {
  readonly #site: Site;
  readonly #zone: Name;
  #active = false;
  #name: Name | undefined;
  #sightings = 0;
  #attempts = 0;
  /** Where this server listens, as messages show it. */
  #address = "";
  #probe: LoopProbe | undefined;
  #timer: Timer | undefined;

  constructor(site: Site) {
    this.#site = site;
    this.#zone = site.block.zones[0] ?? Name.root;
    // One data plane probes. What goes round comes by any of them, so all of them look out (multisocket).
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
    // A socket that was asked for all IPv6 addresses takes no other.
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
        "queries that this server forwards come back to it. Let forward name resolvers that do not ask this server, " +
        "in place of a resolv.conf with a loopback address. " +
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
    // What was seen of an attempt without answer says nothing about the next.
    this.#sightings = 0;
    this.#site.feed.publish(this.#announcement());
    this.#probe?.send();
  }

  #announcement(): Announcement {
    return { name: this.#name?.toString() ?? "", address: this.#address };
  }

  /** In a follower, for each attempt anew; `undefined` ends it. */
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
