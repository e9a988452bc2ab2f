import { HINFO, RecordType } from "../../dns/index.ts";
import type { Handler } from "../../plugin/index.ts";

/** Seconds; the number of the RFC. */
const TTL = 8482;
const DATA = { cpu: Buffer.from("ANY obsoleted"), os: Buffer.from("See RFC 8482") };

/** Answers ANY with the HINFO record of RFC 8482 section 4.2. */
export const answerAny: Handler = (query, next) => {
  if (query.type !== RecordType.ANY) return next(query);
  query.trace?.note("ANY queries get the minimal answer of RFC 8482");
  return query.reply({ answer: [HINFO.create(query.name, TTL, DATA)] });
};
