/** What a collector is told of a query. */
import { rcodeName, recordTypeName } from "../../dns/index.ts";
import type { Outcome, Query, Random } from "../../plugin/index.ts";
import type { TraceContext } from "../../plugin/message/trace-context.ts";
import { type QuerySpan, type QuerySpans, reasonOf } from "./query-spans.ts";
import { isError } from "./sampling.ts";

export interface FinishedTrace {
  /** 32 hexadecimal digits, or 16. */
  readonly traceId: string;
  /** Of the span of the query itself; 16 digits, as those of all spans. */
  readonly rootId: string;
  /** The span of the client, where it has one of its own. */
  readonly parentId: string | undefined;
  /** Whether {@link rootId} is the client's too (`client_server`). */
  readonly isShared: boolean;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Whether the query went wrong, and why as far as anybody said. */
  readonly failed: boolean;
  readonly error: string | undefined;
  readonly tags: QueryTags;
  readonly client: { readonly address: string; readonly port: number; readonly family: 4 | 6 };
  readonly children: readonly ChildSpan[];
}

/** As CoreDNS names them, without what stands in front. */
export interface QueryTags {
  readonly name: string;
  readonly type: string;
  /** `undefined` when nothing was sent. */
  readonly rcode: string | undefined;
  readonly proto: string;
  readonly remote: string;
}

export interface ChildSpan extends QuerySpan {
  readonly id: string;
  readonly parentId: string;
}

/** The name of the span of a query. */
export const ROOT_SPAN = "servedns";

export interface TraceEnd {
  readonly query: Query;
  readonly outcome: Outcome;
  readonly spans: QuerySpans;
  readonly traceId: string;
  readonly parent: TraceContext | undefined;
  readonly sharesSpans: boolean;
  /** What makes milliseconds since 1970 of those of the clock. */
  readonly epoch: number;
  /** `Clock.now()`. */
  readonly endedAt: number;
}

export function finishTrace(end: TraceEnd, random: Random): FinishedTrace {
  const { query, outcome, spans, traceId, parent, epoch } = end;
  const isShared = end.sharesSpans && parent !== undefined;
  const rootId = isShared ? parent.spanId : newId(random);
  const ids = spans.spans.map(() => newId(random));
  return {
    traceId,
    rootId,
    parentId: isShared ? undefined : parent?.spanId,
    isShared,
    startedAt: epoch + query.receivedAt,
    endedAt: epoch + end.endedAt,
    failed: isError(outcome),
    error: outcome.kind === "failed" ? reasonOf(outcome) : undefined,
    tags: {
      name: query.name.toLowerCase().toString(),
      type: recordTypeName(query.type),
      rcode: outcome.kind === "dropped" ? undefined : rcodeName(outcome.rcode),
      proto: query.overStream ? "tcp" : "udp",
      remote: query.client.address,
    },
    client: query.client,
    children: spans.spans.map((span, at) => ({
      ...span,
      id: ids[at] ?? rootId,
      parentId: ids[span.parent] ?? rootId,
      startedAt: epoch + span.startedAt,
      endedAt: epoch + span.endedAt,
    })),
  };
}

/** 16 digits, never all of them zero: that stands for none. */
export function newId(random: Random): string {
  return hex(random.unpredictable()) + hex(random.unpredictable() | 1);
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, "0");
}
