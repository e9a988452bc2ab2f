/**
 * The format of the Datadog agent, version 0.4 of its API: an array of traces, each an array of spans, in
 * MessagePack.
 */
import { type FinishedTrace, ROOT_SPAN } from "./finished-trace.ts";
import { arrayHead, MessagePackWriter } from "./message-pack.ts";
import { microseconds, type Sender, type SpanFormat } from "./span-format.ts";

/** Keeps the trace regardless of the agent's own sampling (`AUTO_KEEP`). */
const PRIORITY_KEEP = 1;

export class DatadogFormat implements SpanFormat {
  readonly method = "PUT";
  readonly contentType = "application/msgpack";
  readonly #sender: Sender;
  readonly #analyticsRate: number | undefined;

  /** @param analyticsRate from 0 to 1 */
  constructor(sender: Sender, analyticsRate: number | undefined) {
    this.#sender = sender;
    this.#analyticsRate = analyticsRate;
  }

  encode(trace: FinishedTrace): Uint8Array {
    const { tags, client } = trace;
    const writer = new MessagePackWriter();
    writer.array(1 + trace.children.length);
    this.#span(writer, {
      name: ROOT_SPAN,
      traceId: trace.traceId,
      id: trace.rootId,
      parentId: trace.parentId,
      failed: trace.failed,
      startedAt: trace.startedAt,
      endedAt: trace.endedAt,
      meta: {
        "coredns.io@name": tags.name,
        "coredns.io@type": tags.type,
        "coredns.io@rcode": tags.rcode,
        "coredns.io@proto": tags.proto,
        "coredns.io@remote": tags.remote,
        "span.kind": "server",
        "network.client.ip": client.address,
        // The upper half of the id, for which its field has no room.
        "_dd.p.tid": trace.traceId.length > 16 ? trace.traceId.slice(0, -16) : undefined,
        "error.message": trace.failed ? trace.error || (tags.rcode ?? "no reply") : undefined,
      },
      metrics: {
        _sampling_priority_v1: PRIORITY_KEEP,
        _top_level: 1,
        "_dd1.sr.eausr": this.#analyticsRate,
      },
    });
    for (const span of trace.children)
      this.#span(writer, {
        ...span,
        traceId: trace.traceId,
        failed: span.error !== undefined,
        meta: {
          "error.message": span.error === "" ? "failed" : span.error,
          ...(span.peer !== undefined && {
            "span.kind": "client",
            "network.destination.ip": span.peer.address,
            "network.destination.port": String(span.peer.port),
          }),
        },
        metrics: {},
      });
    return writer.finish();
  }

  body(traces: readonly Uint8Array[]): Uint8Array {
    return Buffer.concat([arrayHead(traces.length), ...traces]);
  }

  headers(traces: number): Readonly<Record<string, string>> {
    return {
      "x-datadog-trace-count": String(traces),
      "datadog-meta-lang": "nodejs",
      "datadog-meta-tracer-version": this.#sender.version,
    };
  }

  #span(writer: MessagePackWriter, span: DatadogSpan): void {
    const start = microseconds(span.startedAt);
    writer.map(12);
    writer.entry("service", this.#sender.service);
    writer.entry("name", span.name);
    writer.entry("resource", span.name);
    writer.entry("type", "dns");
    writer.text("trace_id").id(span.traceId);
    writer.text("span_id").id(span.id);
    writer.text("parent_id").id(span.parentId ?? "0");
    writer.text("start").integer(BigInt(start) * 1000n);
    writer.text("duration").integer(BigInt(microseconds(span.endedAt) - start) * 1000n);
    writer.text("error").integer(span.failed ? 1n : 0n);
    writer.text("meta").table(span.meta, (value) => writer.text(value));
    writer.text("metrics").table(span.metrics, (value) => writer.double(value));
  }
}

interface DatadogSpan {
  readonly name: string;
  readonly traceId: string;
  readonly id: string;
  readonly parentId: string | undefined;
  readonly failed: boolean;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly meta: Readonly<Record<string, string | undefined>>;
  readonly metrics: Readonly<Record<string, number | undefined>>;
}
