/** OpenTelemetry over HTTP, in JSON (OTLP 1.x, opentelemetry-proto `trace.proto`: ids in hexadecimal, times as texts). */
import { type FinishedTrace, ROOT_SPAN } from "./finished-trace.ts";
import { joined, microseconds, type Sender, type SpanFormat } from "./span-format.ts";

/** `SpanKind` and `StatusCode` of the protocol. */
const Kind = { INTERNAL: 1, SERVER: 2, CLIENT: 3 } as const;
const STATUS_ERROR = 2;

export class OtlpFormat implements SpanFormat {
  readonly method = "POST";
  readonly contentType = "application/json";
  readonly #head: string;

  constructor({ service, hostname, version }: Sender) {
    const resource = attributes({
      "service.name": service,
      "service.version": version,
      "host.name": hostname,
    });
    const scope = { name: "portolan", version };
    this.#head = `{"resourceSpans":[{"resource":${JSON.stringify({ attributes: resource })},"scopeSpans":[{"scope":${JSON.stringify(scope)},"spans":[`;
  }

  encode(trace: FinishedTrace): Uint8Array {
    const { tags, client } = trace;
    const traceId = trace.traceId.padStart(32, "0");
    const root = {
      traceId,
      spanId: trace.rootId,
      ...(trace.parentId !== undefined && { parentSpanId: trace.parentId }),
      name: ROOT_SPAN,
      kind: Kind.SERVER,
      ...times(trace),
      attributes: attributes({
        "coredns.io/name": tags.name,
        "coredns.io/type": tags.type,
        "coredns.io/rcode": tags.rcode,
        "coredns.io/proto": tags.proto,
        "coredns.io/remote": tags.remote,
        // Attribute names of OpenTelemetry's semantic conventions.
        "dns.question.name": tags.name,
        "network.transport": tags.proto,
        "client.address": client.address,
        "client.port": client.port,
      }),
      ...status(trace.failed ? trace.error || (tags.rcode ?? "no reply") : undefined),
    };
    const children = trace.children.map((span) => ({
      traceId,
      spanId: span.id,
      parentSpanId: span.parentId,
      name: span.name,
      kind: span.peer === undefined ? Kind.INTERNAL : Kind.CLIENT,
      ...times(span),
      ...(span.peer !== undefined && {
        attributes: attributes({ "server.address": span.peer.address, "server.port": span.peer.port }),
      }),
      ...status(span.error === "" ? "failed" : span.error),
    }));
    return Buffer.from(JSON.stringify([root, ...children]).slice(1, -1));
  }

  body(traces: readonly Uint8Array[]): Uint8Array {
    return joined(this.#head, traces, ",", "]}]}]}");
  }

  /** `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"…"}}` if the collector rejected some spans. */
  refused(answer: string): number {
    const found = /"rejectedSpans"\s*:\s*"?(\d{1,9})"?/.exec(answer);
    return found === null ? 0 : Number(found[1]);
  }
}

function times(span: { readonly startedAt: number; readonly endedAt: number }) {
  return { startTimeUnixNano: nanoseconds(span.startedAt), endTimeUnixNano: nanoseconds(span.endedAt) };
}

function nanoseconds(milliseconds: number): string {
  return `${microseconds(milliseconds)}000`;
}

function status(error: string | undefined) {
  return error === undefined ? {} : { status: { code: STATUS_ERROR, message: error } };
}

function attributes(values: Readonly<Record<string, string | number | undefined>>) {
  return Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return [];
    // Whole numbers are strings in the JSON of protobuf.
    return [{ key, value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value } }];
  });
}
