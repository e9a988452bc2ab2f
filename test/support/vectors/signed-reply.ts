/** Replies with signatures made on demand, compared without their changing parts. */
import type { ComparableReply } from "./zone-case.ts";

/**
 * Times and octets of signatures are new at each moment, and signatures stand in any order behind the records of their section.
 * @param simplify further, for each record
 */
export function withoutMoments(
  reply: ComparableReply | undefined,
  simplify: (record: string) => string = (record) => record,
): ComparableReply | undefined {
  if (reply === undefined) return undefined;
  const section = (records: readonly string[] = []) =>
    records.map((record) => simplify(withoutMoment(record))).toSorted();
  const { answer } = reply;
  return {
    ...reply,
    answer: {
      ...answer,
      answer: section(answer.answer),
      authority: section(answer.authority),
      additional: section(answer.additional),
    },
  };
}

/** TTL of denials and the case of owners are those of the plugin that answers: its own vectors show them. */
function withoutMoment(record: string): string {
  return record
    .replace(/( RRSIG \S+ \d+ \d+ \d+) \S+ \S+ (\d+ \S+) .*/, "$1 $2")
    .replace(/^(\S+) \d+ IN (SOA|NSEC|RRSIG SOA|RRSIG NSEC) /, "$1 TTL IN $2 ")
    .replace(/^\S+/, (owner) => owner.toLowerCase())
    .replace(/(?<= NSEC )\S+/, (next) => next.toLowerCase());
}
