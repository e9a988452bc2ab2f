/**
 * Rehearsal queries. V8 compiles a function at its first call, so the first answer of each kind would block the event
 * loop for several milliseconds. Plugins that answer from their own data rehearse such answers before sockets are
 * open, or in a turn of their own.
 */
import type { Name } from "../../dns/name.ts";
import { Flag, RecordClass } from "../../dns/numbers.ts";
import { writeU16 } from "../../dns/octets.ts";
import { FixedEndpoint } from "../message/endpoint.ts";
import { type Listener, Query } from "./query.ts";

const HEADER_OCTETS = 12;

const NOWHERE: Listener = {
  label: "",
  echoedOptions: new Set(),
  resolve: (query) => query.fail(),
};
const NOBODY = new FixedEndpoint("127.0.0.1", 0, Uint8Array.of(127, 0, 0, 1));

/** @param now `Clock.now()` */
export function rehearsalQuery(name: Name, type: number, now: number): Query {
  const questionEnd = HEADER_OCTETS + name.wire.length;
  const bytes = new Uint8Array(questionEnd + 4);
  writeU16(bytes, 2, Flag.RD);
  writeU16(bytes, 4, 1);
  bytes.set(name.wire, HEADER_OCTETS);
  writeU16(bytes, questionEnd, type);
  writeU16(bytes, questionEnd + 2, RecordClass.IN);
  const arrival = {
    listener: NOWHERE,
    transport: "udp",
    client: NOBODY,
    local: NOBODY,
    receivedAt: now,
  } as const;
  const query = Query.read(bytes, bytes.length, arrival);
  if (query === undefined) throw new RangeError(`${name} is too long for a query`);
  return query;
}
