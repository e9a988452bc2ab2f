/** Which texts may stand in a DNS name that Kubernetes makes. */
import { parseIpAddress } from "../../lib/ip-address.ts";

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Host names in the wild hold underscores, and an alias may well point to one. */
const TARGET_LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_HOST_NAME_LENGTH = 253;

/** A label as RFC 1123 and the API server want it: lower-case letters, digits and inner hyphens, 63 at the most. */
export function isDnsLabel(text: string): boolean {
  return LABEL.test(text);
}

/**
 * The target of an ExternalName service, lower case and without final dot; undefined for an IP address (rule 55) and
 * for what is no host name.
 */
export function readExternalName(text: string): string | undefined {
  const name = (text.endsWith(".") ? text.slice(0, -1) : text).toLowerCase();
  if (name.length > MAX_HOST_NAME_LENGTH || parseIpAddress(name) !== undefined) return undefined;
  return name.split(".").every((label) => TARGET_LABEL.test(label)) ? name : undefined;
}

/** The key under which the store files a service: its two labels in the order of the DNS name. */
export function serviceKey(namespace: string, name: string): string {
  return `${name}.${namespace}`;
}
