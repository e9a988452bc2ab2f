/**
 * SkyDNS's own configuration in etcd, a JSON object at `config` below the path
 * (docs/spec/kube-dns.md#own-configuration): the parts that this plugin supports.
 */
import { Name } from "../../dns/index.ts";

export interface SkydnsConfig {
  /** Seconds. */
  readonly ttl: number | undefined;
  readonly minTtl: number | undefined;
  readonly priority: number | undefined;
  readonly hostmaster: Name | undefined;
  /** The target of the name `local.dns.<domain>`. */
  readonly local: Name | undefined;
  /** Fields that are set but belong elsewhere in a Corefile, with advice for each. */
  readonly elsewhere: readonly string[];
}

const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ["dns_addr", "the key of the server block sets the address"],
  ["domain", "the zones of 'etcd' set the names"],
  ["nameservers", "use 'forward' with these servers"],
  ["no_rec", "leave 'forward' out"],
  ["round_robin", "use 'loadbalance'"],
  ["ns_rotate", "use 'forward' with 'policy round_robin'"],
  ["dnssec", "use 'dnssec' with this key"],
  ["rcache", "use 'cache'"],
  ["rcache_ttl", "use 'cache' with this TTL"],
  ["scache", "'dnssec' has its own capacity"],
  ["read_timeout", "upstreams have their own time-outs"],
  ["ndot", "every name is forwarded, whatever its number of labels"],
  ["systemd", "systemd sockets are not supported"],
]);

/** @throws Error if the text is not a JSON object */
export function readSkydnsConfig(text: string): SkydnsConfig {
  const json: unknown = JSON.parse(text);
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw new Error("a JSON object was expected");
  const fields = new Map<string, unknown>(Object.entries(json));
  const number = (name: string): number | undefined => {
    const value = fields.get(name);
    return typeof value === "number" && Number.isInteger(value) && value > 0 && value <= 0x7fff_ffff
      ? value
      : undefined;
  };
  const name = (field: string): Name | undefined => {
    const value = fields.get(field);
    // A mailbox may contain an at sign.
    return typeof value === "string" && value !== "" ? Name.tryParse(value.replace("@", ".")) : undefined;
  };
  return {
    ttl: number("ttl"),
    minTtl: number("min_ttl"),
    priority: number("priority"),
    hostmaster: name("hostmaster"),
    local: name("local"),
    elsewhere: [...ELSEWHERE].flatMap(([field, advice]) =>
      isSet(fields.get(field)) ? [`${field}: ${advice}`] : [],
    ),
  };
}

function isSet(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null && value !== "" && value !== false && value !== 0;
}
