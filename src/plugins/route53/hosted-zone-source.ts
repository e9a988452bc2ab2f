/** A hosted zone as records. */
import type { ResourceRecordSet } from "@aws-sdk/client-route-53";
import type { ZoneListing } from "../../zones/backed/zone-listing.ts";
import type { ZoneSource } from "../../zones/backed/zone-source.ts";
import type { Route53Connection } from "./route53-connection.ts";

export interface HostedZoneSourceOptions {
  readonly connection: Route53Connection;
  readonly id: string;
  readonly identity: string;
}

export class HostedZoneSource implements ZoneSource {
  readonly text: string;
  readonly identity: string;
  readonly #options: HostedZoneSourceOptions;

  constructor(options: HostedZoneSourceOptions) {
    this.#options = options;
    this.identity = options.identity;
    this.text = `hosted zone ${options.id}`;
  }

  async list(listing: ZoneListing, signal: AbortSignal): Promise<void> {
    const { connection, id } = this.#options;
    for await (const set of connection.recordSets(id, signal)) addRecordSet(set, listing);
  }
}

/** Alias records have no values, and only Route 53 can resolve them: they are left out, as in CoreDNS. */
function addRecordSet(set: ResourceRecordSet, listing: ZoneListing): void {
  const { Name: spelled = "", Type: type = "", TTL: ttl = 0, ResourceRecords: values = [] } = set;
  if (values.length === 0) return;
  const name = unescapeOctal(spelled);
  if (name === undefined) {
    listing.passOver(spelled, type, "the name has other characters than letters, digits, - and .");
    return;
  }
  for (const { Value: value = "" } of values) listing.addText(name, ttl, type, value);
}

/**
 * Route 53 writes all but letters, digits, hyphens, underscores and dots as `\052`: three octal digits.
 * @returns `undefined` for a name with other characters than these and `*`
 */
export function unescapeOctal(text: string): string | undefined {
  const plain = text.replaceAll(/\\([0-3][0-7]{2})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
  return /^[A-Za-z0-9_.*-]*$/.test(plain) ? plain : undefined;
}
