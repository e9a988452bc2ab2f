/**
 * Discovery of designated resolvers (RFC 9462): points clients of plain DNS to encrypted listeners, from the keys of
 * the blocks with `discovery`. It is part of every server block, because clients query the block that they use.
 */
import type { Scheme } from "../../corefile/server-key.ts";
import { Name, parseRecord, RecordClass, RecordType, type ResourceRecord } from "../../dns/index.ts";
import { formatIpAddress, parseIpAddress } from "../../lib/net/ip-address.ts";
import {
  domainName,
  type Handler,
  ipAddress,
  option,
  type PluginInstance,
  type Query,
  type Reply,
  required,
  rest,
  type Site,
} from "../../plugin/index.ts";

/** `discovery NAME [ADDRESS...]`. */
export const discoveryOption = option({ name: required(domainName()), address: rest(ipAddress()) });

export interface DiscoveryConfig {
  /** The name in the certificates. */
  readonly name: Name;
  /** Addresses of the listeners; without them clients look up the addresses of the name. */
  readonly address: readonly string[];
}

/** Seconds, short so that clients soon see a changed configuration. */
const TTL = 300;
const ZONE = Name.parse("resolver.arpa.");
const QUESTION = Name.parse("_dns.resolver.arpa.");
const START_OF_AUTHORITY = parseRecord(
  `resolver.arpa. ${TTL} IN SOA localhost. nobody.invalid. 1 3600 1200 604800 ${TTL}`,
);

/** The protocols in service bindings, and their default ports (RFC 9461). */
const PROTOCOLS: Readonly<
  Partial<Record<Scheme, { readonly words: string; readonly port: number; readonly path?: boolean }>>
> = {
  tls: { words: "alpn=dot", port: 853 },
  https: { words: "alpn=h2,http/1.1", port: 443, path: true },
  https3: { words: "alpn=h3", port: 443, path: true },
  quic: { words: "alpn=doq", port: 853 },
};

/** The encrypted listeners of one block to announce. */
export interface Designation {
  readonly config: DiscoveryConfig;
  readonly block: Site["block"];
}

/** Whether a block has a listener to announce: a server of a single zone cannot replace a resolver. */
export function isDesignated({ scheme, zone }: Site["block"]["keys"][number]): boolean {
  return PROTOCOLS[scheme] !== undefined && zone === ".";
}

export class DiscoveryResponder implements PluginInstance {
  readonly #designations: readonly Designation[];
  #records: readonly ResourceRecord[] = [];

  constructor(designations: readonly Designation[]) {
    this.#designations = designations;
  }

  readonly handle: Handler = (query, next) => {
    if (query.class !== RecordClass.IN || !query.name.isAtOrBelow(ZONE)) return next(query);
    return this.#answer(query);
  };

  /** Ports are final once everything listens. */
  started(): void {
    const texts = new Set(this.#designations.flatMap(announcements));
    this.#records = [...texts].map((text, index) =>
      parseRecord(`${QUESTION} ${TTL} IN SVCB ${index + 1} ${text}`),
    );
  }

  /** No other plugin answers for this zone, which contains nothing else (RFC 9462 section 6.4). */
  #answer(query: Query): Reply {
    const { name, type } = query;
    if (type !== RecordType.SVCB || !name.equals(QUESTION) || this.#records.length === 0)
      return query.reply({ authoritative: true, authority: [START_OF_AUTHORITY] });
    query.trace?.note("encrypted listeners of this server");
    return query.reply({ authoritative: true, answer: this.#records });
  }
}

/** Records from the target on, in the order of the keys. */
function announcements({ config, block }: Designation): string[] {
  const hints = hintsOf(config.address);
  const listeners = block.listeners();
  return block.keys.flatMap((key) => {
    const protocol = PROTOCOLS[key.scheme];
    if (protocol === undefined || !isDesignated(key)) return [];
    const listener = listeners.find(
      ({ label }) => label.startsWith(`${key.scheme}://`) && label.endsWith(`:${key.port}`),
    );
    const port = listener?.address()?.port ?? key.port;
    const words = [
      config.name.toString(),
      protocol.words,
      ...(port === protocol.port ? [] : [`port=${port}`]),
      ...hints,
      ...(protocol.path === true ? ["dohpath=/dns-query{?dns}"] : []),
    ];
    return words.join(" ");
  });
}

function hintsOf(addresses: readonly string[]): string[] {
  const ofLength = (length: number): string =>
    addresses
      .flatMap((text) => {
        const octets = parseIpAddress(text);
        return octets?.length === length ? formatIpAddress(octets) : [];
      })
      .join(",");
  const [ipv4, ipv6] = [ofLength(4), ofLength(16)];
  return [...(ipv4 === "" ? [] : [`ipv4hint=${ipv4}`]), ...(ipv6 === "" ? [] : [`ipv6hint=${ipv6}`])];
}
