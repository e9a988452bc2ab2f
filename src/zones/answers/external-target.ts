/** Completes aliases whose target is in another zone or plugin (src/plugins/file/README.md). */
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import { Rcode } from "../../dns/numbers.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";

/**
 * Appends the records of the target to the aliases. A missing target decides the rcode (RFC 6604 section 3); one that cannot be
 * resolved here leaves the aliases alone.
 * @param aliases the answer so far
 * @param nameServers the NS records of the zone
 */
export function joinLookup(
  query: Query,
  aliases: EncodedSections,
  nameServers: EncodedSections,
  outcome: Outcome,
): Outcome {
  const spelled = query.bytes.subarray(12, query.questionEnd);
  const { answer, authority: proofs } = aliases.decode(spelled);
  const ownAuthority = [...nameServers.decode(spelled).authority, ...proofs];
  if (outcome.kind !== "reply") {
    const refused = outcome.kind === "failed" && outcome.rcode === Rcode.REFUSED;
    const rcode = refused ? Rcode.NOERROR : Rcode.SERVFAIL;
    return query.reply({ authoritative: true, rcode, answer, authority: ownAuthority });
  }
  const { rcode } = outcome;
  const isKnown = rcode === Rcode.NOERROR || rcode === Rcode.NXDOMAIN;
  const joined = rcode === Rcode.REFUSED ? answer : [...answer, ...outcome.answer];
  const isDenied =
    rcode === Rcode.NXDOMAIN || (isKnown && outcome.answer.length === 0 && outcome.authority.length > 0);
  return query.reply({
    authoritative: true,
    rcode: rcode === Rcode.REFUSED ? Rcode.NOERROR : rcode,
    answer: joined,
    authority: isDenied ? [...outcome.authority, ...proofs] : ownAuthority,
    truncated: outcome.truncated,
  });
}
