/** Finished queries as the API shows them, and filters for them. */
import { Name, NameError } from "../dns/name.ts";
import { parseRcode, rcodeName } from "../dns/numbers.ts";
import { parseRecordType, recordTypeName } from "../dns/type-names.ts";
import { parseIpAddress } from "../lib/net/ip-address.ts";
import { PrefixSet, parseIpPrefix } from "../lib/net/prefix-set.ts";
import { parseGoDuration } from "../lib/time/duration.ts";
import type { FinishedQuery } from "../plugin/stream/query-reader.ts";
import type { QueryRow } from "./api-types.ts";
import { RequestError } from "./http/request-error.ts";
import { nameOf } from "./top-lists.ts";
import type { Workloads } from "./workloads.ts";

const NO_OCTETS = new Uint8Array(0);
const MICROSECOND = 1_000;
/** Longest value of a filter: a name has 255 octets, each written as \\DDD at most. */
const LONGEST_VALUE = 1_024;

export function queryRow(query: FinishedQuery, workloads: Workloads): QueryRow {
  const { client, rcode, ttl, duration } = query;
  const workload = workloads.of(client);
  return {
    time: Math.round(query.time * MICROSECOND) / MICROSECOND,
    name: nameOf(query).toString(),
    type: recordTypeName(query.type),
    rcode: rcode === undefined ? "-" : rcodeName(rcode),
    client,
    ...(workload !== undefined && { workload }),
    duration: Math.round(duration * MICROSECOND) / MICROSECOND,
    plugin: query.plugin,
    transport: query.transport,
    port: query.port,
    id: query.id,
    listener: query.listener,
    answers: query.answers,
    ...(ttl !== undefined && { ttl }),
    size: query.replySize,
    weight: query.weight,
    ...(query.wasShed && { shed: true }),
  };
}

/** The conditions of a filter, as URL parameters and as flags of `portolan tail`. */
export const FILTER_PARAMETERS = [
  "name",
  "namespace",
  "workload",
  "client",
  "type",
  "rcode",
  "slower",
  "by",
] as const;
export type FilterParameter = (typeof FILTER_PARAMETERS)[number];

/** A filter of queries. All conditions have to hold. */
export class QueryFilter {
  readonly #tests: ((query: FinishedQuery) => boolean)[] = [];
  readonly #workloads: Workloads;

  /** @throws RequestError */
  constructor(parameters: URLSearchParams, workloads: Workloads) {
    this.#workloads = workloads;
    for (const parameter of FILTER_PARAMETERS) {
      const value = parameters.get(parameter)?.trim() ?? "";
      if (value.length > LONGEST_VALUE)
        throw new RequestError(400, `${parameter}: at most ${LONGEST_VALUE} characters`);
      if (value !== "") this.#tests.push(this.#test(parameter, value));
    }
    this.#testTimes(parameters);
  }

  #testTimes(parameters: URLSearchParams): void {
    const from = timeIn(parameters, "from");
    const to = timeIn(parameters, "to");
    if (from !== undefined) this.#tests.push(({ time }) => time >= from);
    if (to !== undefined) this.#tests.push(({ time }) => time <= to);
  }

  wants(query: FinishedQuery): boolean {
    for (const test of this.#tests) if (!test(query)) return false;
    return true;
  }

  #test(parameter: FilterParameter, value: string): (query: FinishedQuery) => boolean {
    switch (parameter) {
      case "name":
        return nameTest(value);
      case "namespace":
        return ({ client }) => this.#workloads.namespaceOf(client) === value;
      case "workload":
        return ({ client }) => this.#workloads.of(client)?.startsWith(value) === true;
      case "client": {
        if (parseIpPrefix(value) === undefined) throw bad(`client: ${value} is not an IP address or prefix`);
        const prefixes = new PrefixSet<true>();
        prefixes.add(value, true);
        return ({ client }) => prefixes.lookup(parseIpAddress(client) ?? NO_OCTETS) === true;
      }
      case "type": {
        const type = parseRecordType(value);
        if (type === undefined) throw bad(`type: ${value} is not a record type`);
        return (query) => query.type === type;
      }
      case "rcode": {
        if (value === "-") return ({ rcode }) => rcode === undefined;
        if (value.toLowerCase() === "error")
          return ({ rcode }) => rcode === undefined || (rcode !== 0 && rcode !== 3);
        const wanted = parseRcode(value.toUpperCase());
        if (wanted === undefined) throw bad(`rcode: ${value} is not an rcode, - or error`);
        return ({ rcode }) => rcode === wanted;
      }
      case "slower": {
        const least = /^\d+(\.\d+)?$/.test(value) ? Number(value) : parseGoDuration(value);
        if (least === undefined || least < 0) throw bad(`slower: ${value} is not a duration such as 20ms`);
        return ({ duration }) => duration >= least;
      }
      case "by":
        return ({ plugin }) => plugin === value;
    }
  }
}

/** A time in milliseconds of the Unix epoch, written as such or as in ISO 8601; `undefined` if it is not given. */
function timeIn(parameters: URLSearchParams, parameter: string): number | undefined {
  const value = parameters.get(parameter)?.trim() ?? "";
  if (value === "") return undefined;
  const time = /^\d+$/.test(value) ? Number(value) : Date.parse(value);
  if (!Number.isFinite(time))
    throw bad(`${parameter}: ${value.slice(0, 40)} is not a time such as 2026-01-31T12:00:00Z`);
  return time;
}

/** With a final dot: the name and everything below it; else any name that contains the text. */
function nameTest(value: string): (query: FinishedQuery) => boolean {
  if (!value.endsWith(".")) {
    const part = value.toLowerCase();
    return (query) => nameOf(query).toLowerCase().toString().includes(part);
  }
  try {
    const zone = Name.parse(value);
    return (query) => nameOf(query).isAtOrBelow(zone);
  } catch (error) {
    if (error instanceof NameError) throw bad(`name: ${value} is not a domain name: ${error.reason}`);
    throw error;
  }
}

function bad(message: string): RequestError {
  return new RequestError(400, message);
}
