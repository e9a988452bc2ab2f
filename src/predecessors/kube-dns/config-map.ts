/** kube-dns's ConfigMap, or its folder: the three keys that kube-dns reads (docs/spec/kube-dns.md#configuration). */

import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { messageOf } from "../../lib/text/message-of.ts";

export interface KubeDnsConfig {
  /** Name of a federation -> its domain. */
  readonly federations: ReadonlyMap<string, string>;
  /** Domain -> servers, each `ip`, `ip:port`, `[ip6]:port` or a host name. */
  readonly stubDomains: ReadonlyMap<string, readonly string[]>;
  /** Each `ip` or `ip:port`. */
  readonly upstreamNameservers: readonly string[];
}

export const EMPTY_KUBE_DNS_CONFIG: KubeDnsConfig = {
  federations: new Map(),
  stubDomains: new Map(),
  upstreamNameservers: [],
};

/** A value that kube-dns refuses, too. The message is one line. */
export class KubeDnsConfigError extends Error {
  override readonly name = "KubeDnsConfigError";
  readonly key: string;

  constructor(key: string, reason: string) {
    super(`${key}: ${reason}`);
    this.key = key;
  }
}

/** The known keys; all others are ignored. */
export const KUBE_DNS_KEYS = ["federations", "stubDomains", "upstreamNameservers"] as const;

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_UPSTREAMS = 3;

/**
 * Reads the keys that exist.
 * @param data text by key
 * @throws KubeDnsConfigError
 */
export function readKubeDnsConfig(data: Readonly<Record<string, string>>): KubeDnsConfig {
  return {
    federations: readFederations(data.federations ?? ""),
    stubDomains: readStubDomains(data.stubDomains),
    upstreamNameservers: readUpstreams(data.upstreamNameservers),
  };
}

/** `name=domain,...`, or a JSON object, as kubeadm once accepted. */
function readFederations(text: string): Map<string, string> {
  const key = "federations";
  const trimmed = text.trim();
  const pairs = trimmed.startsWith("{")
    ? Object.entries(objectOf(key, trimmed)).map(([name, domain]) => [name, String(domain)] as const)
    : trimmed
        .split(",")
        .filter((item) => item.trim() !== "")
        .map((item) => {
          const [name = "", domain, ...more] = item.split("=").map((part) => part.trim());
          if (domain === undefined || more.length > 0)
            throw new KubeDnsConfigError(key, `'${item.trim()}' is not name=domain`);
          return [name, domain] as const;
        });
  for (const [name, domain] of pairs) {
    if (!LABEL.test(name)) throw new KubeDnsConfigError(key, `'${name}' is not a label`);
    if (!isSubdomain(domain)) throw new KubeDnsConfigError(key, `'${domain}' is not a domain`);
  }
  return new Map(pairs);
}

function readStubDomains(text: string | undefined): Map<string, readonly string[]> {
  const key = "stubDomains";
  if (text === undefined || text.trim() === "") return new Map();
  return new Map(
    Object.entries(objectOf(key, text)).map(([domain, servers]) => {
      if (!isSubdomain(domain)) throw new KubeDnsConfigError(key, `'${domain}' is not a domain`);
      return [domain, readStubServers(key, domain, servers)];
    }),
  );
}

function readStubServers(key: string, domain: string, value: unknown): readonly string[] {
  const member = JSON.stringify(domain);
  if (!isTexts(value)) throw new KubeDnsConfigError(key, `${member}: ${NO_TEXTS}`);
  for (const server of value) {
    if (!isAddress(server, 0) && !isSubdomain(server))
      throw new KubeDnsConfigError(
        key,
        `${member}: '${server}' is not an address, with or without port, or a host name`,
      );
  }
  return value;
}

function readUpstreams(text: string | undefined): readonly string[] {
  const key = "upstreamNameservers";
  if (text === undefined || text.trim() === "") return [];
  const servers = parseJson(key, text);
  if (!isTexts(servers)) throw new KubeDnsConfigError(key, NO_TEXTS);
  if (servers.length > MAX_UPSTREAMS)
    throw new KubeDnsConfigError(key, `${servers.length} servers, at most ${MAX_UPSTREAMS} are taken`);
  for (const server of servers) {
    if (!isAddress(server, 1))
      throw new KubeDnsConfigError(key, `'${server}' is not an address, with or without port`);
  }
  return servers;
}

function isSubdomain(text: string): boolean {
  return text.length <= 253 && text.split(".").every((label) => LABEL.test(label));
}

/** An IP address with an optional port; IPv6 needs brackets then. */
function isAddress(text: string, lowestPort: number): boolean {
  if (parseIpAddress(text) !== undefined) return true;
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || parseIpAddress(host) === undefined) return false;
  return port === undefined || (Number(port) >= lowestPort && Number(port) <= 65_535);
}

function objectOf(key: string, text: string): Readonly<Record<string, unknown>> {
  const json = parseJson(key, text);
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw new KubeDnsConfigError(key, "a JSON object was expected");
  return Object.fromEntries(Object.entries(json));
}

const NO_TEXTS = "a JSON array of strings was expected";

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function parseJson(key: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new KubeDnsConfigError(key, messageOf(error));
  }
}
