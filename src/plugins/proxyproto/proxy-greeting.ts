import { isIpv4Mapped } from "../../lib/net/ip-address.ts";
import type { IpPrefix } from "../../lib/net/prefix-set.ts";
import { NO_PREFIX, PrefixTrie } from "../../lib/net/prefix-trie.ts";
import { type Greeting, GreetingError, type GreetingReading } from "../../plugin/contract/greeting.ts";
import type { Clock, Logger } from "../../plugin/index.ts";
import type { Endpoint, FixedEndpoint } from "../../plugin/message/endpoint.ts";
import type { ProxyConfig, ProxyPolicy } from "./config.ts";
import { ABSENT, beginsWithText, INCOMPLETE, type ProxyHeader, readHeader } from "./proxy-header.ts";
import { ProxySessions } from "./proxy-sessions.ts";

const NO_HEADER: GreetingReading = Object.freeze({ length: 0 });

/** Milliseconds between two log lines about rejected headers. All of them are counted. */
const LOG_INTERVAL = 10_000;

/** Reads PROXY headers at the start of streams and datagrams. */
export class ProxyGreeting implements Greeting {
  readonly #policy: ProxyPolicy;
  readonly #keepsExtensions: boolean;
  readonly #allowed: { readonly ipv4: PrefixTrie; readonly ipv6: PrefixTrie } | undefined;
  readonly #sessions: ProxySessions | undefined;
  #clock: Clock | undefined;
  #log: Logger | undefined;
  #loggedAt = Number.NEGATIVE_INFINITY;
  #unlogged = 0;

  constructor({ allowed, policy, sessionLifetime, maxSessions, tlvMetadata }: ProxyConfig) {
    this.#policy = policy;
    this.#keepsExtensions = tlvMetadata;
    this.#allowed = allowed.length === 0 ? undefined : triesOf(allowed);
    this.#sessions = sessionLifetime > 0 ? new ProxySessions(sessionLifetime, maxSessions) : undefined;
  }

  /** Starts session tracking and logging. */
  begin(clock: Clock, log: Logger): void {
    this.#clock = clock;
    this.#log = log;
  }

  readStream(octets: Uint8Array, peer: Endpoint): GreetingReading | undefined {
    const policy = this.#policyFor(peer);
    if (policy === "skip") return NO_HEADER;
    const header = this.#read(octets, peer);
    if (header === INCOMPLETE) return undefined;
    if (header === ABSENT) return NO_HEADER;
    if (policy === "reject") throw this.#refusal("a header that the policy rejects", peer);
    if (policy === "ignore") return { length: header.length };
    return { length: header.length, client: header.source, local: header.destination };
  }

  readDatagram(octets: Uint8Array, peer: Endpoint): GreetingReading {
    const policy = this.#policyFor(peer);
    if (policy === "skip") return NO_HEADER;
    if (beginsWithText(octets)) throw this.#refusal("a header of version 1, which is only for streams", peer);
    const header = this.#read(octets, peer);
    if (header === INCOMPLETE) throw this.#refusal("a truncated header", peer);
    if (header === ABSENT) return policy === "use" ? this.#tracked(peer) : NO_HEADER;
    if (policy === "reject") throw this.#refusal("a header that the policy rejects", peer);
    // The proxy itself is the sender, for example in health checks.
    if (header.kind === "local") return { length: header.length };
    const source = datagramSource(header);
    if (source === undefined) throw this.#refusal("a header that is not about UDP over IP", peer);
    if (policy === "ignore") return { length: header.length };
    if (this.#clock !== undefined) this.#sessions?.remember(peer, source, this.#clock.turnTime());
    return { length: header.length, client: source };
  }

  /** The client from an earlier datagram of the same sender. */
  #tracked(peer: Endpoint): GreetingReading {
    if (this.#sessions === undefined || this.#clock === undefined) return NO_HEADER;
    const client = this.#sessions.find(peer, this.#clock.turnTime());
    return client === undefined ? NO_HEADER : { length: 0, client };
  }

  #policyFor(peer: Endpoint): ProxyPolicy {
    if (this.#allowed === undefined) return this.#policy;
    const { octets } = peer;
    const isMapped = octets.length === 16 && isIpv4Mapped(octets);
    const found =
      octets.length === 4 || isMapped
        ? this.#allowed.ipv4.longest(octets, isMapped ? 12 : 0)
        : this.#allowed.ipv6.longest(octets, 0);
    return found === NO_PREFIX ? this.#policy : "use";
  }

  #read(octets: Uint8Array, peer: Endpoint): ProxyHeader | typeof ABSENT | typeof INCOMPLETE {
    try {
      return readHeader(octets, this.#keepsExtensions);
    } catch (error) {
      if (error instanceof GreetingError) this.#note(error.message, peer);
      throw error;
    }
  }

  #refusal(problem: string, peer: Endpoint): GreetingError {
    this.#note(problem, peer);
    return new GreetingError(problem);
  }

  /** Clients control the number of these errors, so they are logged in intervals with a count. */
  #note(problem: string, peer: Endpoint): void {
    const now = this.#clock?.turnTime() ?? 0;
    if (now - this.#loggedAt < LOG_INTERVAL) {
      this.#unlogged++;
      return;
    }
    const more = this.#unlogged === 0 ? "" : ` (and ${this.#unlogged} more before)`;
    this.#log?.warning(
      `dropping invalid Proxy Protocol packet from ${peer.address}:${peer.port}: ${problem}${more}`,
    );
    this.#loggedAt = now;
    this.#unlogged = 0;
  }
}

function datagramSource({ kind, source }: ProxyHeader): FixedEndpoint | undefined {
  return kind === "udp" ? source : undefined;
}

function triesOf(networks: readonly IpPrefix[]): { readonly ipv4: PrefixTrie; readonly ipv6: PrefixTrie } {
  const tries = { ipv4: new PrefixTrie(4), ipv6: new PrefixTrie(6) };
  for (const { octets, length } of networks) {
    const trie = octets.length === 4 ? tries.ipv4 : tries.ipv6;
    trie.setValue(trie.node(octets, length), 0);
  }
  return tries;
}
