import { decodeClientSubnet, EdnsOptionCode, findOption } from "../../dns/index.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Handler, PluginInstance, Query, Site } from "../../plugin/index.ts";
import type { Asn, City } from "./database.ts";
import { DatabaseFile } from "./database-file.ts";

/** Labels of a city database, without the prefix `geoip/`. */
const CITY_LABELS: Readonly<Record<string, (city: City | undefined) => string>> = {
  "city/name": (city) => city?.city?.names?.en ?? "",
  "country/code": (city) => city?.country?.iso_code ?? "",
  "country/name": (city) => city?.country?.names?.en ?? "",
  "country/is_in_european_union": (city) => String(city?.country?.is_in_european_union ?? false),
  "continent/code": (city) => city?.continent?.code ?? "",
  "continent/name": (city) => city?.continent?.names?.en ?? "",
  latitude: (city) => decimal(city?.location?.latitude),
  longitude: (city) => decimal(city?.location?.longitude),
  timezone: (city) => city?.location?.time_zone ?? "",
  postalcode: (city) => city?.postal?.code ?? "",
  "subdivisions/code": (city) =>
    (city?.subdivisions ?? [])
      .map(({ iso_code }) => iso_code ?? "")
      .filter((code) => code !== "")
      .join(","),
};

const ASN_LABELS: Readonly<Record<string, (network: Asn | undefined) => string>> = {
  "asn/number": (network) => String(network?.autonomous_system_number ?? 0),
  "asn/org": (network) => network?.autonomous_system_organization ?? "",
};

export class GeoIp implements PluginInstance {
  readonly #file: DatabaseFile;
  readonly #fromSubnet: boolean;
  readonly #site: Site;

  constructor(path: string, fromSubnet: boolean, site: Site) {
    this.#file = new DatabaseFile(site.resolvePath(path), site);
    this.#fromSubnet = fromSubnet;
    this.#site = site;
  }

  readonly handle: Handler = (query, next) => next(query);

  async examine(): Promise<void> {
    await this.start();
    this.stop();
  }

  start(): Promise<void> {
    return this.#file.start();
  }

  stop(): void {
    this.#file.stop();
  }

  describeState(): readonly string[] {
    return [`database ${this.#file.describe()}`];
  }

  /** Looks up the database when a value is read, once for all values. */
  provideMetadata(query: Query): void {
    const { database } = this.#file;
    if (database === undefined) return;
    let found: (City & Asn) | undefined;
    let isKnown = false;
    const record = () => {
      if (!isKnown) found = this.#lookup(query);
      isKnown = true;
      return found;
    };
    if (database.hasCities) setLabels(query, CITY_LABELS, record);
    if (database.hasNetworks) setLabels(query, ASN_LABELS, record);
  }

  #lookup(query: Query): (City & Asn) | undefined {
    const address = (this.#fromSubnet ? subnetOf(query) : undefined) ?? query.client.address;
    try {
      const found = this.#file.database?.lookup(address);
      query.trace?.note(`looked up ${address}: ${found === undefined ? "not found" : "found"}`, { address });
      return found;
    } catch (error) {
      this.#site.log.debug(`looking up ${address} failed: ${messageOf(error)}`);
      return undefined;
    }
  }
}

function setLabels<T>(
  query: Query,
  labels: Readonly<Record<string, (record: T | undefined) => string>>,
  record: () => T | undefined,
): void {
  for (const [label, read] of Object.entries(labels)) {
    query.setMetadata(`geoip/${label}`, () => read(record()));
  }
}

/** The client subnet in the query (RFC 7871). */
function subnetOf(query: Query): string | undefined {
  const option = findOption(query.edns?.options ?? [], EdnsOptionCode.CLIENT_SUBNET);
  const subnet = option === undefined ? undefined : decodeClientSubnet(option.data);
  return subnet === undefined || subnet.family === 0 ? undefined : subnet.address;
}

function decimal(value: number | undefined): string {
  return value === undefined ? "" : String(value);
}
