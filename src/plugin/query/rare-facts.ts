/** Facts that few queries have, kept apart: pending queries and cache hits should be small. */
import type { Edns } from "../../dns/edns.ts";
import type { Name } from "../../dns/name.ts";
import type { MessageSeal } from "../message/message-seal.ts";
import type { SpanSink, Trace } from "./trace.ts";

/** See the accessors of `Query` with the same names. */
export class RareFacts {
  replyLimit = 0xffff;
  deadline = Number.POSITIVE_INFINITY;
  view = "";
  trace: Trace | undefined;
  spans: SpanSink | undefined;
  metadata: Map<string, string | (() => string)> | undefined;
  signer: Name | undefined;
  seals: MessageSeal[] | undefined;
  /** OPT, once it was read. */
  edns: Edns | undefined;

  /** The facts that a derived query takes over. */
  forDerived(): RareFacts | undefined {
    const { deadline, view, trace, spans, metadata } = this;
    const isPlain = trace === undefined && spans === undefined && metadata === undefined;
    if (isPlain && view === "" && deadline === Number.POSITIVE_INFINITY) return undefined;
    const facts = new RareFacts();
    facts.deadline = deadline;
    facts.view = view;
    facts.trace = trace;
    facts.spans = spans;
    facts.metadata = metadata;
    return facts;
  }
}
