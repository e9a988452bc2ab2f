import { A, AAAA, type ResourceRecord } from "../../dns/index.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { PrefixSet, parseIpPrefix } from "../../lib/net/prefix-set.ts";
import { type Value, ValueProblem } from "../../plugin/index.ts";
import { sortRecords } from "./policy.ts";

/** The addresses of one CIDR. */
export type Network = PrefixSet<true>;

export function networkValue(): Value<Network> {
  return {
    expected: "a network such as 10.0.0.0/8 or 2001:db8::/32",
    parse(word) {
      if (!word.includes("/") || parseIpPrefix(word) === undefined)
        return new ValueProblem(`invalid CIDR ${word}`);
      const network: Network = new PrefixSet();
      network.add(word, true);
      return network;
    },
  };
}

/**
 * Orders a section: aliases, then addresses by network, then other addresses, mail exchangers, and the rest. A
 * section with at most one address stays unchanged.
 */
export function preferNetworks(
  section: readonly ResourceRecord[],
  networks: readonly Network[],
): readonly ResourceRecord[] {
  const { aliases, addresses, mail, others } = sortRecords(section);
  if (addresses.length < 2) return section;
  // The last group holds the addresses outside all networks.
  const groups = Array.from({ length: networks.length + 1 }, (): ResourceRecord[] => []);
  for (const record of addresses)
    groups.at(networks.findIndex((network) => contains(network, record)))?.push(record);
  return [...aliases, ...groups.flat(), ...mail, ...others];
}

function contains(network: Network, record: ResourceRecord): boolean {
  if (!A.is(record) && !AAAA.is(record)) return false;
  const octets = parseIpAddress(record.data.address);
  return octets !== undefined && network.lookup(octets) === true;
}
