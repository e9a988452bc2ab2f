/** The fields of a query beside its line in a JSON log (`-log-format json`): the fields of CoreDNS, in its order. */
import { className, rcodeName, recordTypeName } from "../../dns/index.ts";
import type { LogFields } from "../../lib/logging/log.ts";
import type { Query, Reply } from "../../plugin/index.ts";

/**
 * @param reply undefined if nothing was sent @param elapsed milliseconds from the arrival of the query @param size
 * bytes sent; by default those of the reply
 */
export function fieldsOf(query: Query, reply: Reply | undefined, elapsed: number, size?: number): LogFields {
  return {
    plugin: "log",
    client_ip: query.client.address,
    client_port: query.client.port,
    qname: query.name.toLowerCase().toString(),
    qtype: recordTypeName(query.type),
    qclass: className(query.class),
    protocol: query.overStream ? "tcp" : "udp",
    id: query.id,
    opcode: query.opcode,
    request_size: query.length,
    dnssec_ok: query.dnssecOk,
    bufsize: query.overStream ? 65_535 : query.udpSize,
    rcode: reply === undefined ? null : rcodeName(reply.rcode),
    response_size: size ?? reply?.size ?? 0,
    // Seconds, to the nanosecond.
    duration_seconds: Math.round(elapsed * 1_000_000) / 1_000_000_000,
  };
}
