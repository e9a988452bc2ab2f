/** Adds and removes zones by catalogs (RFC 9432 section 5). */

import type { Name } from "../../dns/index.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Site, ZoneList } from "../../plugin/index.ts";
import type { Zone } from "../../zones/data/zone.ts";
import { type Catalog, type CatalogMember, readCatalog } from "../../zones/transfer/catalog.ts";
import type { SecondaryZone } from "../../zones/transfer/secondary-zone.ts";

/** The rules for catalogs in a line of the Corefile. */
export interface CatalogRules {
  /** Members must be these zones, or zones below them. */
  readonly accepted: ZoneList;
  /** Makes a zone with the primaries of the catalog. */
  readonly make: (apex: Name) => SecondaryZone;
}

export interface CatalogsOptions {
  readonly site: Site;
  /** Whether a zone of this name is served by other configuration. */
  readonly isServed: (apex: Name) => boolean;
  /** Starts transfers of a zone. */
  readonly start: (zone: SecondaryZone) => Promise<void>;
  /** Removes a zone, and its copy on disk. */
  readonly remove: (zone: SecondaryZone) => Promise<void>;
  readonly pause: () => Promise<void>;
}

interface Member {
  id: string;
  owner: CatalogZone;
  zone: SecondaryZone;
}

/** One catalog in its latest version. */
class CatalogZone {
  readonly apex: Name;
  readonly rules: CatalogRules;
  members: Catalog = new Map();
  /** Rejected members, for which a warning was logged. */
  refused: ReadonlySet<string> = new Set();

  constructor(apex: Name, rules: CatalogRules) {
    this.apex = apex;
    this.rules = rules;
  }
}

export class Catalogs {
  readonly #options: CatalogsOptions;
  readonly #catalogs: CatalogZone[] = [];
  /** Members by the text of their names. */
  readonly #members = new Map<string, Member>();
  /** Changes run one after the other. */
  #work: Promise<void> = Promise.resolve();
  readonly #endCollecting: () => void;
  #isStopped = false;

  constructor(options: CatalogsOptions) {
    this.#options = options;
    const gauge = options.site.metrics.gauge({
      name: "portolan_catalog_members",
      help: "Zones served because a catalog zone lists them.",
      labels: ["catalog"],
    });
    this.#endCollecting = options.site.metrics.onCollect(() => {
      for (const catalog of this.#catalogs) {
        let count = 0;
        for (const { owner } of this.#members.values()) if (owner === catalog) count++;
        gauge.slot(catalog.apex.toString()).set(count);
      }
    });
  }

  /**
   * @returns a function that checks each version of the catalog before it is served; it throws for an invalid catalog
   */
  add(apex: Name, rules: CatalogRules): (zone: Zone) => Promise<() => void> {
    const catalog = new CatalogZone(apex, rules);
    this.#catalogs.push(catalog);
    return async (zone) => {
      const members = await readCatalog(zone, this.#options.pause);
      return () => {
        this.#work = this.#work
          .then(() => this.#change(catalog, members))
          .catch((error: unknown) => {
            this.#options.site.log.error(`catalog ${apex}: ${messageOf(error)}`);
          });
      };
    };
  }

  zones(): readonly SecondaryZone[] {
    return Array.from(this.#members.values(), ({ zone }) => zone);
  }

  /** Resolves when the served zones match the catalogs. */
  async settled(): Promise<void> {
    await this.#work;
  }

  stop(): void {
    this.#isStopped = true;
    this.#endCollecting();
    for (const zone of this.zones()) zone.stop();
  }

  async #change(changed: CatalogZone, members: Catalog): Promise<void> {
    changed.members = members;
    for (const [text, member] of this.#members) {
      if (!member.owner.members.has(text)) await this.#remove(text, member);
    }
    // A change of one catalog may free a zone for another.
    for (const catalog of this.#catalogs) {
      const refused = new Set<string>();
      for (const [text, listed] of catalog.members) {
        if (this.#isStopped) return;
        const reason = await this.#take(catalog, text, listed);
        if (reason === undefined) continue;
        refused.add(text);
        if (!catalog.refused.has(text))
          this.#options.site.log.warning(`catalog ${catalog.apex}: ${text} is not served: ${reason}`);
      }
      catalog.refused = refused;
    }
  }

  /** @returns why a member is rejected */
  async #take(catalog: CatalogZone, text: string, listed: CatalogMember): Promise<string | undefined> {
    const { accepted, make } = catalog.rules;
    if (!accepted.contains(listed.zone)) return "the name is not in a zone of 'catalog'";
    const present = this.#members.get(text);
    if (present === undefined) {
      if (this.#options.isServed(listed.zone)) return "another line serves a zone of this name";
      await this.#begin(catalog, text, listed);
      return undefined;
    }
    const { owner } = present;
    if (owner !== catalog && owner.members.get(text)?.newOwner?.equals(catalog.apex) !== true)
      return `it is a member of the catalog ${owner.apex}`;
    if (present.id === listed.id) {
      if (owner !== catalog) await this.#move(catalog, text, present, make(listed.zone));
      return undefined;
    }
    await this.#remove(text, present);
    await this.#begin(catalog, text, listed);
    return undefined;
  }

  async #begin(catalog: CatalogZone, text: string, listed: CatalogMember): Promise<void> {
    const zone = catalog.rules.make(listed.zone);
    this.#members.set(text, { id: listed.id, owner: catalog, zone });
    await this.#options.start(zone);
  }

  /** The catalog that owns the zone must permit the move. */
  async #move(catalog: CatalogZone, text: string, former: Member, zone: SecondaryZone): Promise<void> {
    await zone.inherit(former.zone);
    former.zone.stop();
    this.#members.set(text, { id: former.id, owner: catalog, zone });
    await this.#options.start(zone);
  }

  async #remove(text: string, { zone }: Member): Promise<void> {
    zone.stop();
    this.#members.delete(text);
    await this.#options.remove(zone);
  }
}
