/**
 * An alias of a plugin whose target is elsewhere: looks the target up through the server
 * (docs/spec/coredns-behaviour.md#internal-lookups).
 */
import type { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { NoNextPluginError, type Outcome } from "./outcome.ts";
import type { Query } from "./query.ts";

/**
 * Answers with the aliases, followed by the server's answer for their last target. If the target does not exist, if
 * this server refuses it, or if no plugin answers for it, the aliases are sent alone: the client's resolver may
 * follow them. If an upstream could not be queried, the query fails, so that no cache stores the name as one without
 * addresses (docs/spec/kubernetes-dns.md#external-target-missing).
 * @param aliases CNAME records from the query's name to `target`, in order
 */
export function followAlias(
  query: Query,
  aliases: readonly ResourceRecord[],
  target: Name,
): Outcome | Promise<Outcome> {
  const outcome = query.lookup(target, query.type);
  if (outcome instanceof Promise) return outcome.then((settled) => joinAliases(query, aliases, settled));
  return joinAliases(query, aliases, outcome);
}

function joinAliases(query: Query, aliases: readonly ResourceRecord[], outcome: Outcome): Outcome {
  if (outcome.kind === "dropped" || outcome.kind === "stream") return query.fail();
  if (outcome.kind === "failed" && outcome.error instanceof NoNextPluginError)
    return query.reply({ authoritative: true, answer: aliases });
  const { rcode } = outcome;
  if (rcode !== Rcode.NOERROR && rcode !== Rcode.NXDOMAIN && rcode !== Rcode.REFUSED) {
    return outcome.kind === "failed" ? query.fail(Rcode.SERVFAIL, outcome.error) : query.fail();
  }
  if (outcome.kind === "failed") return query.reply({ authoritative: true, answer: aliases });
  const answer = [...aliases, ...outcome.answer];
  return query.reply({ authoritative: true, answer, truncated: outcome.truncated });
}
