/**
 * Denials without SOA, which nobody keeps: dnsmasq does for `--neg-ttl` seconds (dnsmasq(8)). Behind the cache they get an SOA that says so,
 * in front of it they lose it again.
 */

import { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import { SOA } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { bareDirective } from "../../plugin/config/schema.ts";
import { definePlugin, type PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import { authorityHolds } from "../../plugin/query/response-type.ts";

/** Directives of this command. */
export const PLAIN_DENIALS = "dnsmasq_plain_denials";
export const DATED_DENIALS = "dnsmasq_dated_denials";

/** Tells our SOA from all others. */
const MARK = Name.parse("neg-ttl.dnsmasq-nanny.invalid.");

/** Stands in front of the cache. */
export const plainDenials: PluginDefinition<unknown> = definePlugin({
  name: PLAIN_DENIALS,
  summary: "Takes the SOA out of denials that came without one.",
  config: bareDirective(),
  create: () => ({
    handle: (query, next) => {
      const outcome = next(query);
      return outcome instanceof Promise ? outcome.then(withoutDate) : withoutDate(outcome);
    },
  }),
});

/**
 * Stands behind the cache.
 * @param ttl seconds, 0 for not keeping them
 */
export function datedDenials(ttl: () => number): PluginDefinition<unknown> {
  const withDate = (outcome: Outcome): Outcome => {
    if (outcome.kind !== "reply" || !isBareDenial(outcome)) return outcome;
    const seconds = ttl();
    const numbers = { serial: 0, refresh: 0, retry: 0, expire: 0, minimum: seconds };
    const soa = SOA.create(Name.root, seconds, { primary: MARK, mailbox: MARK, ...numbers });
    outcome.replaceRecords({ authority: [...outcome.authority, soa] });
    return outcome;
  };
  return definePlugin({
    name: DATED_DENIALS,
    summary: "Says in denials without SOA for how long they are kept.",
    config: bareDirective(),
    create: () => ({
      handle: (query, next) => {
        const outcome = next(query);
        return outcome instanceof Promise ? outcome.then(withDate) : withDate(outcome);
      },
    }),
  });
}

function isBareDenial({ rcode, truncated, sections }: Reply): boolean {
  if (truncated || sections.answerCount > 0) return false;
  if (rcode !== Rcode.NOERROR && rcode !== Rcode.NXDOMAIN) return false;
  return !authorityHolds(sections, RecordType.SOA);
}

function withoutDate(outcome: Outcome): Outcome {
  if (outcome.kind !== "reply") return outcome;
  const { sections } = outcome;
  if (sections.answerCount > 0 || !authorityHolds(sections, RecordType.SOA)) return outcome;
  const authority = outcome.authority.filter(
    (record) => !(SOA.is(record) && record.data.primary.equals(MARK)),
  );
  if (authority.length < sections.authorityCount) outcome.replaceRecords({ authority });
  return outcome;
}
