/** A query as a JSON object on one line. The fields are stable: new ones may be added, but none removed. */
import { className, rcodeName, recordTypeName } from "../../dns/index.ts";
import { toJsonLine } from "../../lib/logging/log-format.ts";
import { flagNames, flagsToSend } from "../../plugin/facts/line-format.ts";
import type { Clock, Query, Reply } from "../../plugin/index.ts";

export interface AnsweredBy {
  /** The plugin that answered, or failed. */
  readonly plugin: string | undefined;
  /** Bytes sent; by default those of the reply. */
  readonly size?: number | undefined;
}

export class JsonFormat {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param reply undefined if nothing was sent @param elapsed milliseconds from the arrival of the query */
  line(query: Query, reply: Reply | undefined, elapsed: number, { plugin, size }: AnsweredBy): string {
    const labels = query.metadata === undefined ? undefined : labelsOf(query, query.metadata.keys());
    const fields = {
      time: new Date(this.#clock.wallTime() - elapsed).toISOString(),
      level: "info",
      client: query.client.address,
      port: query.client.port,
      local: query.local.address,
      server: query.listener.label,
      proto: query.overStream ? "tcp" : "udp",
      transport: query.transport,
      id: query.id,
      opcode: query.opcode,
      name: query.name.toLowerCase().toString(),
      type: recordTypeName(query.type),
      class: className(query.class),
      size: query.length,
      do: query.dnssecOk,
      bufsize: query.overStream ? 65_535 : query.udpSize,
      rcode: reply === undefined ? null : rcodeName(reply.rcode),
      flags: reply === undefined ? [] : flagNames(flagsToSend(query, reply)),
      rsize: size ?? reply?.size ?? 0,
      // Seconds, to the microsecond.
      duration: Math.round(elapsed * 1000) / 1_000_000,
      plugin: plugin ?? null,
      view: query.view === "" ? null : query.view,
      trace_id: query.spans?.traceId ?? null,
      ...(labels !== undefined && { metadata: labels }),
    };
    return toJsonLine(fields);
  }
}

function labelsOf(query: Query, labels: Iterable<string>): Record<string, string> {
  const values: Record<string, string> = Object.create(null);
  for (const label of labels) values[label] = query.metadataValue(label) ?? "";
  return values;
}
