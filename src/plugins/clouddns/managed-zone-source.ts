/** A managed zone of Cloud DNS as records. */
import { list, record, string } from "../../lib/net/http-client.ts";
import type { ZoneListing } from "../../zones/backed/zone-listing.ts";
import type { ZoneSource } from "../../zones/backed/zone-source.ts";
import type { CloudDnsApi } from "./cloud-dns-api.ts";

export interface ManagedZoneSourceOptions {
  readonly api: CloudDnsApi;
  readonly project: string;
  readonly zone: string;
  readonly identity: string;
}

export class ManagedZoneSource implements ZoneSource {
  readonly text: string;
  readonly identity: string;
  readonly #options: ManagedZoneSourceOptions;

  constructor(options: ManagedZoneSourceOptions) {
    this.#options = options;
    this.identity = options.identity;
    this.text = `managed zone ${options.zone} of project ${options.project}`;
  }

  async list(listing: ZoneListing, signal: AbortSignal): Promise<void> {
    const { api, project, zone } = this.#options;
    for await (const set of api.recordSets(project, zone, signal)) {
      const { name, type, ttl, rrdatas } = record(set);
      const seconds = typeof ttl === "number" ? ttl : Number.NaN;
      // Sets with a routing policy have their values in the policy, and only Cloud DNS can select among them.
      for (const data of list(rrdatas)) listing.addText(string(name), seconds, string(type), string(data));
    }
  }
}
