/**
 * Negative answers without SOA, which caches do not store, but dnsmasq does for `--neg-ttl` seconds (dnsmasq(8)). Behind the cache
 * they get an SOA with that TTL, and before it they lose it again.
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

/** Marks our SOA. */
const MARK = Name.parse("neg-ttl.dnsmasq-nanny.invalid.");

/** Runs before the cache. */
export const plainDenials: PluginDefinition<unknown> = definePlugin({
  name: PLAIN_DENIALS,
  summary: "Removes the SOA from negative answers that came without one.",
  config: bareDirective(),
  create: () => ({
    handle: (query, next) => {
      const outcome = next(query);
      return outcome instanceof Promise ? outcome.then(withoutDate) : withoutDate(outcome);
    },
  }),
});

/**
 * Runs behind the cache.
 * @param ttl seconds, 0 to not cache them
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
    summary: "Adds an SOA to negative answers without one, so that they are cached.",
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
