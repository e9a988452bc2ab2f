/** Which texts may stand in a DNS name that Kubernetes makes. */
import { parseIpAddress } from "../../lib/net/ip-address.ts";

/** Host names in the wild hold underscores, and an alias may well point to one. */
const TARGET_LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/;
const MAX_HOST_NAME_LENGTH = 253;

/** A label as RFC 1123 and the API server want it: lower-case letters, digits and inner hyphens, at most 63. */
export function isDnsLabel(text: string): boolean {
  // By hand: three texts of each object that changes are looked at, and to call a regular expression takes longer than to look.
  const { length } = text;
  if (length === 0 || length > MAX_LABEL_LENGTH) return false;
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at);
    const isInner = at > 0 && at < length - 1;
    if (!isLetterOrDigit(code) && !(isInner && code === HYPHEN)) return false;
  }
  return true;
}

const MAX_LABEL_LENGTH = 63;
const HYPHEN = 0x2d;

/** Of ASCII, in lower case. */
function isLetterOrDigit(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
}

/**
 * The target of an ExternalName service, lower case and without final dot; undefined for an IP address (docs/spec/kubernetes-dns.md#external-name-address) and
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
