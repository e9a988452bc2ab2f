/** A rule in the form for matching queries: the networks of all policies in one tree for each set of types. */
import { formatIpAddress, isIpv4Mapped } from "../../lib/net/ip-address.ts";
import { NO_PREFIX, PrefixTrie } from "../../lib/net/prefix-trie.ts";
import type { AclPolicy, AclRule } from "./config.ts";

/** No policy of the rule matches. */
export const UNDECIDED = -1;

/** Policies for the same types. The value of a network is the index of the first policy that names it. */
interface PolicyGroup {
  readonly types: ReadonlySet<number> | undefined;
  readonly ipv4: PrefixTrie;
  readonly ipv6: PrefixTrie;
  /** Index of the first policy for all clients; later policies never match for these types. */
  forAll: number;
}

export class CompiledRule {
  readonly rule: AclRule;
  readonly #groups: readonly PolicyGroup[];

  constructor(rule: AclRule) {
    this.rule = rule;
    const groups = new Map<string, PolicyGroup>();
    for (const [place, policy] of rule.policies.entries()) addTo(groupFor(groups, policy), policy, place);
    this.#groups = [...groups.values()];
  }

  /** The index of the first policy for a query, {@link UNDECIDED} without one. @param client 4 or 16 octets */
  decide(type: number, client: Uint8Array): number {
    let first = UNDECIDED;
    for (const group of this.#groups) {
      if (group.types !== undefined && !group.types.has(type)) continue;
      const place = leastPlace(group, client);
      if (place !== UNDECIDED && (first === UNDECIDED || place < first)) first = place;
    }
    return first;
  }

  /**
   * The network of a policy that contains the client, `undefined` for a policy for all clients. Slow; only for
   * explain notes.
   */
  networkOf(place: number, client: Uint8Array): string | undefined {
    const types = this.rule.policies[place]?.types;
    const group = this.#groups.find((candidate) => sameTypes(candidate.types, types));
    if (group === undefined || group.forAll === place) return undefined;
    const offset = client.length === 16 && isIpv4Mapped(client) ? 12 : 0;
    const trie = client.length - offset === 4 ? group.ipv4 : group.ipv6;
    const node = trie.leastNode(client, offset);
    if (node === NO_PREFIX) return undefined;
    const octets = client.slice(offset);
    const length = trie.length(node);
    for (let bit = length; bit < octets.length * 8; bit++)
      octets[bit >> 3] = (octets[bit >> 3] ?? 0) & ~(0x80 >> (bit & 7));
    return `${formatIpAddress(octets)}/${length}`;
  }
}

function leastPlace(group: PolicyGroup, client: Uint8Array): number {
  const place =
    client.length === 4
      ? group.ipv4.least(client, 0)
      : isIpv4Mapped(client)
        ? group.ipv4.least(client, 12)
        : group.ipv6.least(client, 0);
  return place === NO_PREFIX ? group.forAll : place;
}

function groupFor(groups: Map<string, PolicyGroup>, { types }: AclPolicy): PolicyGroup {
  const key = keyOf(types);
  let group = groups.get(key);
  if (group === undefined) {
    group = { types, ipv4: new PrefixTrie(4), ipv6: new PrefixTrie(6), forAll: UNDECIDED };
    groups.set(key, group);
  }
  return group;
}

function addTo(group: PolicyGroup, { networks }: AclPolicy, place: number): void {
  // Indices increase: a policy after one for all clients is never reached.
  if (group.forAll !== UNDECIDED) return;
  if (networks === undefined) {
    group.forAll = place;
    return;
  }
  for (const { octets, length } of networks) {
    const trie = octets.length === 4 ? group.ipv4 : group.ipv6;
    const node = trie.node(octets, length);
    if (trie.value(node) === NO_PREFIX) trie.setValue(node, place);
  }
}

function keyOf(types: ReadonlySet<number> | undefined): string {
  return types === undefined ? "*" : [...types].sort((a, b) => a - b).join(" ");
}

function sameTypes(one: ReadonlySet<number> | undefined, other: ReadonlySet<number> | undefined): boolean {
  return keyOf(one) === keyOf(other);
}
