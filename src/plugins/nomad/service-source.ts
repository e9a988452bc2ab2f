/** The services of Nomad as a zone: `SERVICE.NAMESPACE.ZONE` with addresses and ports. */
import { A, AAAA, Name, SOA, SRV } from "../../dns/index.ts";
import { list, record, string } from "../../lib/net/http-client.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import type { ZoneListing } from "../../zones/backed/zone-listing.ts";
import { type ZoneSource, ZoneSourceError } from "../../zones/backed/zone-source.ts";
import type { AgentClient } from "./agent-client.ts";

export interface ServiceSourceOptions {
  readonly client: AgentClient;
  readonly apex: Name;
  /** Name of the source in messages. */
  readonly text: string;
  readonly identity: string;
  /** A filter expression of Nomad, for the registrations of each service. */
  readonly filter: string | undefined;
  /** Seconds. */
  readonly ttl: number;
}

/** Concurrent requests: agents accept 100 connections of one client by default. */
const CONCURRENCY = 8;
/** A blocking query waits this long at the agent, which adds up to a sixteenth. */
const WAIT = "60s";
/** Milliseconds after which the agent counts as dead. */
const WAIT_TIMEOUT = 75_000;
/** The value of CoreDNS. Seconds. */
const NEGATIVE_TTL = 30;
const PRIORITY = 10;
const WEIGHT = 10;

interface Service {
  readonly name: string;
  readonly namespace: string;
}

export class ServiceSource implements ZoneSource {
  readonly text: string;
  readonly identity: string;
  /** In lower case. */
  readonly namespaces: Set<string> = new Set();
  readonly #options: ServiceSourceOptions;
  /** Index of the listed state of Nomad's table of services. */
  #index = "0";

  constructor(options: ServiceSourceOptions) {
    this.#options = options;
    this.text = options.text;
    this.identity = options.identity;
  }

  async list(listing: ZoneListing, signal: AbortSignal): Promise<void> {
    const { client, apex } = this.#options;
    const answer = await client.get("/v1/services", { namespace: "*" }, signal);
    const services = [...readServices(listOf(answer.body, "services"), listing)];
    this.namespaces.clear();
    for (const { namespace } of services) this.namespaces.add(namespace.toLowerCase());
    addStartOfAuthority(listing, apex);
    let next = 0;
    const work = async (): Promise<void> => {
      for (let service = services[next++]; service !== undefined; service = services[next++])
        await this.#addService(service, listing, signal);
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, work));
    // Changes after the first answer make the next blocking query return at once.
    this.#index = indexOf(answer.header("x-nomad-index"));
  }

  async changed(signal: AbortSignal): Promise<boolean> {
    const parameters = { namespace: "*", index: this.#index, wait: WAIT };
    const answer = await this.#options.client.get("/v1/services", parameters, signal, WAIT_TIMEOUT);
    // The index decreases when a server is restored from a snapshot.
    return indexOf(answer.header("x-nomad-index")) !== this.#index;
  }

  async #addService({ name, namespace }: Service, listing: ZoneListing, signal: AbortSignal): Promise<void> {
    const { client, filter, apex, ttl } = this.#options;
    const parameters = { namespace, ...(filter !== undefined && { filter }) };
    const { body } = await client.get(`/v1/service/${encodeURIComponent(name)}`, parameters, signal);
    const owner = `${name}.${namespace}.${apex}`;
    for (const entry of listOf(body, `registrations of ${name}`)) {
      const { Address, Port } = record(entry);
      const address = string(Address);
      const octets = parseIpAddress(address);
      if (octets === undefined) {
        listing.passOver(owner, "A", `${JSON.stringify(Address)} is not an IP address`);
        continue;
      }
      if (octets.length === 4) listing.add(owner, ttl, "A", (at) => A.create(at, ttl, { address }));
      else listing.add(owner, ttl, "AAAA", (at) => AAAA.create(at, ttl, { address }));
      const port =
        typeof Port === "number" && Number.isInteger(Port) && Port >= 0 && Port <= 0xffff ? Port : -1;
      if (port < 0) listing.passOver(owner, "SRV", `${JSON.stringify(Port)} is not a port`);
      else {
        const data = { priority: PRIORITY, weight: WEIGHT, port };
        listing.add(owner, ttl, "SRV", (at) => SRV.create(at, ttl, { ...data, target: at }));
      }
    }
  }
}

/** The endpoint may be another server: a missing list is an error, not an empty list. */
function listOf(body: unknown, what: string): readonly unknown[] {
  if (body !== null && !Array.isArray(body)) throw new ZoneSourceError(`the answer is not a list of ${what}`);
  return list(body);
}

function* readServices(entries: readonly unknown[], listing: ZoneListing): Generator<Service> {
  for (const entry of entries) {
    const { Namespace, Services } = record(entry);
    const namespace = string(Namespace);
    for (const service of list(Services)) {
      const name = string(record(service).ServiceName);
      if (isLabel(name) && isLabel(namespace)) yield { name, namespace };
      else
        listing.passOver(
          `${name}.${namespace}.${listing.apex}`,
          "A",
          "a service and a namespace are one label each",
        );
    }
  }
}

function addStartOfAuthority(listing: ZoneListing, apex: Name): void {
  const data = {
    primary: Name.fromLabels(["ns1"], apex),
    mailbox: Name.fromLabels(["hostmaster"], apex),
    serial: 0,
    refresh: 3_600,
    retry: 600,
    expire: 86_400,
    minimum: NEGATIVE_TTL,
  };
  listing.add(apex.toString(), NEGATIVE_TTL, "SOA", (name) => SOA.create(name, NEGATIVE_TTL, data));
}

function isLabel(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,63}$/.test(text);
}

/**
 * Index 0 would make queries return at once, again and again. @throws ZoneSourceError without an index: no change
 * would ever be seen
 */
function indexOf(header: string | undefined): string {
  if (header === undefined)
    throw new ZoneSourceError("no X-Nomad-Index in the answer: a proxy may have removed it");
  return header !== undefined && /^[1-9]\d*$/.test(header) ? header : "1";
}
