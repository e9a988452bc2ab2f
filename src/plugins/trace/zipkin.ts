/** Zipkin, version 2 of its JSON: an array of spans (https://zipkin.io/zipkin-api/#/default/post_spans). */
import { type FinishedTrace, ROOT_SPAN } from "./finished-trace.ts";
import { joined, microseconds, type Sender, type SpanFormat } from "./span-format.ts";

export class ZipkinFormat implements SpanFormat {
  readonly method = "POST";
  readonly contentType = "application/json";
  readonly #local: { readonly serviceName: string };

  constructor({ service }: Sender) {
    this.#local = { serviceName: service };
  }

  encode(trace: FinishedTrace): Uint8Array {
    const { traceId, client, tags } = trace;
    const root = {
      traceId,
      id: trace.rootId,
      ...(trace.parentId !== undefined && { parentId: trace.parentId }),
      name: ROOT_SPAN,
      kind: "SERVER",
      ...(trace.isShared && { shared: true }),
      ...times(trace),
      localEndpoint: this.#local,
      remoteEndpoint: endpoint(client.address, client.port),
      tags: {
        "coredns.io/name": tags.name,
        "coredns.io/type": tags.type,
        ...(tags.rcode !== undefined && { "coredns.io/rcode": tags.rcode }),
        "coredns.io/proto": tags.proto,
        "coredns.io/remote": tags.remote,
        ...(trace.failed && { error: trace.error || (tags.rcode ?? "no reply") }),
      },
    };
    const children = trace.children.map((span) => ({
      traceId,
      id: span.id,
      parentId: span.parentId,
      name: span.name,
      ...times(span),
      localEndpoint: this.#local,
      ...(span.peer !== undefined && {
        kind: "CLIENT",
        remoteEndpoint: endpoint(span.peer.address, span.peer.port),
      }),
      ...(span.error !== undefined && { tags: { error: span.error || "failed" } }),
    }));
    // Without the brackets: several traces form one array.
    return Buffer.from(JSON.stringify([root, ...children]).slice(1, -1));
  }

  body(traces: readonly Uint8Array[]): Uint8Array {
    return joined("[", traces, ",", "]");
  }
}

function times(span: { readonly startedAt: number; readonly endedAt: number }) {
  const timestamp = microseconds(span.startedAt);
  // A duration of 0 means unknown.
  return { timestamp, duration: Math.max(1, microseconds(span.endedAt) - timestamp) };
}

function endpoint(address: string, port: number) {
  return { [address.includes(":") ? "ipv6" : "ipv4"]: address, port };
}
