/** The key of a client's bucket: a hash of its network, and of what the bucket is for. Creates no object for a query. */
import { KeyedHash } from "../../lib/collections/keyed-hash.ts";
import type { IpPrefix } from "../../lib/net/prefix-set.ts";
import { NO_PREFIX, PrefixTrie } from "../../lib/net/prefix-trie.ts";
import { ClientWords, prefixMask } from "../message/client-words.ts";
import type { Endpoint } from "../message/endpoint.ts";

export interface ClientNetworks {
  /** Bits of an address that make a client. */
  readonly ipv4: number;
  readonly ipv6: number;
}

/** Keys that are remembered, with a place for each. */
const RECENT = 256;
const RECENT_SHIFT = 24;
const RECENT_WORDS = 4;
const NO_DOMAIN = -1;
const HASH_PRIME = 0x9e3779b1;

export class ClientKey {
  readonly hash: KeyedHash;
  /** The address of the client at hand; after {@link address} its network. */
  readonly client: ClientWords = new ClientWords();
  /** Address, domain, and both parts of the hash. */
  readonly #recent: Int32Array = new Int32Array(RECENT * RECENT_WORDS).fill(NO_DOMAIN);
  readonly #ipv4: Int32Array;
  readonly #ipv6: Int32Array;

  /** @param left, right two secret numbers of 32 bits */
  constructor({ ipv4, ipv6 }: ClientNetworks, left: number, right: number) {
    this.hash = new KeyedHash(left, right);
    this.#ipv4 = prefixMask(ipv4);
    this.#ipv6 = prefixMask(ipv6);
  }

  read(client: Endpoint): void {
    this.client.read(client);
  }

  /** Reduces the address at hand to its network. */
  reduce(): void {
    this.client.mask(this.client.family === 4 ? this.#ipv4 : this.#ipv6);
  }

  /**
   * Makes the key for the network at hand: `hash.low` and `hash.high`. Those of recent IPv4 clients are remembered.
   * @param domain what the bucket is for
   */
  make(domain: number): void {
    const { hash, client } = this;
    const { words } = client;
    if (client.family === 6) {
      hash.ofWords(domain, words, 4);
      return;
    }
    const address = words[0] as number;
    const recent = this.#recent;
    const at = (Math.imul(address ^ domain, HASH_PRIME) >>> RECENT_SHIFT) * RECENT_WORDS;
    if (recent[at] === address && recent[at + 1] === domain) {
      hash.low = recent[at + 2] as number;
      hash.high = recent[at + 3] as number;
      return;
    }
    hash.ofWords(domain, words, 1);
    recent[at] = address;
    recent[at + 1] = domain;
    recent[at + 2] = hash.low;
    recent[at + 3] = hash.high;
  }

  /** Begins a key of more than the network at hand. @param domain what the bucket is for */
  start(domain: number): void {
    const { hash, client } = this;
    const { words } = client;
    hash.start(domain);
    hash.add(words[0] as number);
    if (client.family === 4) return;
    hash.add(words[1] as number);
    hash.add(words[2] as number);
    hash.add(words[3] as number);
  }
}

/** Networks whose clients have no limits. */
export class ExemptNetworks {
  readonly #tries: { readonly 4: PrefixTrie; readonly 6: PrefixTrie } = {
    4: new PrefixTrie(4),
    6: new PrefixTrie(6),
  };
  readonly #isEmpty: boolean;

  constructor(networks: readonly IpPrefix[]) {
    this.#isEmpty = networks.length === 0;
    for (const { octets, length } of networks) {
      const trie = this.#tries[octets.length === 4 ? 4 : 6];
      trie.setValue(trie.node(octets, length), 0);
    }
  }

  has({ family, octets }: ClientWords): boolean {
    return !this.#isEmpty && this.#tries[family].longest(octets, 0) !== NO_PREFIX;
  }
}
