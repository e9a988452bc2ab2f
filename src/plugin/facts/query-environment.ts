/** The functions of expressions about a query (src/plugins/view/README.md). */
import { className } from "../../dns/numbers.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import type {
  Environment,
  EnvironmentFunction,
  KnownArgument,
} from "../../expression/evaluation/environment.ts";
import { RunFault } from "../../expression/values/language-error.ts";
import { BOOL, INT, STRING, type Type } from "../../expression/values/types.ts";
import type { ExpressionValue } from "../../expression/values/values.ts";
import { isIpv4Mapped, parseIpAddress } from "../../lib/net/ip-address.ts";
import { type IpPrefix, parseIpPrefix } from "../../lib/net/prefix-set.ts";
import type { Query } from "../query/query.ts";

/** @param queryOf returns the query of the expression's facts */
export function queryFunctions<F>(queryOf: (facts: F) => Query): ReadonlyMap<string, EnvironmentFunction<F>> {
  const ask = (result: Type, get: (query: Query) => ExpressionValue): EnvironmentFunction<F> => ({
    parameters: [],
    result,
    call: (facts) => get(queryOf(facts)),
  });
  return new Map<string, EnvironmentFunction<F>>([
    ["bufsize", ask(INT, (query) => (isOverUdp(query) ? query.udpSize : 0xffff))],
    ["class", ask(STRING, (query) => className(query.class))],
    ["client_ip", ask(STRING, (query) => query.client.address)],
    ["do", ask(BOOL, (query) => query.dnssecOk)],
    ["id", ask(INT, (query) => query.id)],
    [
      "incidr",
      { parameters: [STRING, STRING], result: BOOL, call: inNetwork, prepare: prepareInNetwork(queryOf) },
    ],
    [
      "metadata",
      {
        parameters: [STRING],
        result: STRING,
        call: (facts, label) => queryOf(facts).metadataValue(textOf(label)) ?? "",
      },
    ],
    ["name", ask(STRING, (query) => query.name.toLowerCase().toString())],
    ["opcode", ask(INT, (query) => query.opcode)],
    ["port", ask(STRING, (query) => String(query.client.port))],
    ["proto", ask(STRING, (query) => (isOverUdp(query) ? "udp" : "tcp"))],
    ["server_ip", ask(STRING, (query) => query.local.address)],
    ["server_port", ask(STRING, (query) => String(query.local.port))],
    ["size", ask(INT, (query) => query.length)],
    ["type", ask(STRING, (query) => recordTypeName(query.type))],
  ]);
}

/** For expressions about a query alone. */
export const QUERY_ENVIRONMENT: Environment<Query> = { functions: queryFunctions((query: Query) => query) };

function isOverUdp({ transport }: Query): boolean {
  return transport === "udp" || transport === "quic" || transport === "https3";
}

/** Arguments are converted to strings before the call. */
function textOf(value: ExpressionValue): string {
  return typeof value === "string" ? value : "";
}

/** @throws RunFault for an invalid address or network */
function inNetwork(_facts: unknown, address: ExpressionValue, network: ExpressionValue): boolean {
  return contains(parseNetwork(textOf(network), textOf(address)), parseIpAddress(textOf(address)));
}

/** Parses the network once, and uses the client's address as octets: most views consist of this test. */
function prepareInNetwork<F>(
  queryOf: (facts: F) => Query,
): (args: readonly KnownArgument[]) => ((facts: F) => ExpressionValue) | undefined {
  return ([address, network]) => {
    if (typeof network?.constant !== "string" || !network.constant.includes("/")) return undefined;
    const prefix = parseIpPrefix(network.constant);
    if (prefix === undefined) return undefined;
    if (address?.call === "client_ip") return (facts) => contains(prefix, queryOf(facts).client.octets);
    if (address?.call === "server_ip") return (facts) => contains(prefix, queryOf(facts).local.octets);
    return undefined;
  };
}

function parseNetwork(text: string, address: string): IpPrefix {
  if (parseIpAddress(address) === undefined) throw new RunFault("first argument is not an IP address");
  const [, octets, length] = /^(.*)\/0*(\d+)$/.exec(text) ?? [];
  const prefix = octets === undefined ? undefined : parseIpPrefix(`${octets}/${length}`);
  if (prefix === undefined) throw new RunFault(`invalid CIDR address: ${text}`);
  return prefix;
}

/** IPv4-mapped IPv6 addresses count as IPv4. */
function contains({ octets: network, length }: IpPrefix, address: Uint8Array | undefined): boolean {
  if (address === undefined) return false;
  const at = address.length === 16 && isIpv4Mapped(address) ? 12 : 0;
  if (address.length - at !== network.length) return false;
  const whole = length >> 3;
  for (let i = 0; i < whole; i++) if (address[at + i] !== network[i]) return false;
  const rest = length & 7;
  return rest === 0 || ((address[at + whole] ?? 0) ^ (network[whole] ?? 0)) >> (8 - rest) === 0;
}
