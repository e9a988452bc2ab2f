/** The kinds of answers that rate limits tell apart, as in BIND's `rate-limit`. */
import { Rcode } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Failure } from "./outcome.ts";
import type { Reply } from "./reply.ts";

export const AnswerKind = {
  /** It has records in its answer section. */
  RESPONSE: 0,
  /** The name exists, but has no record of the type. */
  NODATA: 1,
  NXDOMAIN: 2,
  /** It delegates to other servers. */
  REFERRAL: 3,
  /** Any other response code. */
  ERROR: 4,
} as const;

export type AnswerKind = (typeof AnswerKind)[keyof typeof AnswerKind];

export function answerKind(outcome: Reply | Failure): AnswerKind {
  const { rcode } = outcome;
  if (rcode === Rcode.NXDOMAIN) return AnswerKind.NXDOMAIN;
  if (rcode !== Rcode.NOERROR || outcome.kind === "failed") return AnswerKind.ERROR;
  const { sections } = outcome;
  if (sections.answerCount > 0) return AnswerKind.RESPONSE;
  return sections.authorityCount > 0 && sections.typeAt(0) === RecordType.NS
    ? AnswerKind.REFERRAL
    : AnswerKind.NODATA;
}
