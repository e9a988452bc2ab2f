/** The data of a query that a collector gets. */
import { rcodeName, recordTypeName } from "../../dns/index.ts";
import type { Outcome, Query, Random } from "../../plugin/index.ts";
import type { TraceContext } from "../../plugin/message/trace-context.ts";
import { type QuerySpan, type QuerySpans, reasonOf } from "./query-spans.ts";
import { isError } from "./sampling.ts";

export interface FinishedTrace {
  /** 32 hexadecimal digits, or 16. */
  readonly traceId: string;
  /** The span of the query itself; 16 digits, as all span ids. */
  readonly rootId: string;
  /** The span of the client, if it has one of its own. */
  readonly parentId: string | undefined;
  /** Whether {@link rootId} is also the client's span (`client_server`). */
  readonly isShared: boolean;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Whether the query failed, and the reason if it is known. */
  readonly failed: boolean;
  readonly error: string | undefined;
  readonly tags: QueryTags;
  readonly client: { readonly address: string; readonly port: number; readonly family: 4 | 6 };
  readonly children: readonly ChildSpan[];
}

/** Tags with the names of CoreDNS, without their prefix. */
export interface QueryTags {
  readonly name: string;
  readonly type: string;
  /** `undefined` if no reply was sent. */
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
  /** Offset from `Clock.now()` to milliseconds since 1970. */
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

/** 16 digits, never all zeros, which means no id. */
export function newId(random: Random): string {
  return hex(random.unpredictable()) + hex(random.unpredictable() | 1);
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, "0");
}
