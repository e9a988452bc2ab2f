/** The addresses under which the outside reaches a service. */
import { Name } from "../../dns/name.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { readExternalName } from "../objects/names.ts";
import type { Service } from "../objects/objects.ts";
import { readAddresses } from "../objects/reduce.ts";

export interface ExternalAddresses {
  /** 4 or 16 octets each, without duplicates: external IPs first, then those of the load balancer. */
  readonly octets: readonly Uint8Array[];
  /** Host names of the load balancer, in lower case. */
  readonly hosts: readonly Name[];
}

/** What of a service's external addresses can be used; a text that is neither address nor host name is skipped. */
export function externalAddresses({ externalAddresses: texts }: Service): ExternalAddresses {
  return { octets: readAddresses(texts), hosts: texts.flatMap((text) => hostName(text) ?? []) };
}

/** The host name that an external address is; undefined for any other. */
export function hostName(text: string): Name | undefined {
  if (parseIpAddress(text) !== undefined) return undefined;
  const host = readExternalName(text);
  return host === undefined ? undefined : Name.fromLabels(host.split("."));
}
