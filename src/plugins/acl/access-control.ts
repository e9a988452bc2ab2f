import { type Edns, ExtendedErrorCode, extendedError } from "../../dns/edns.ts";
import type { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import {
  DROPPED,
  type Handler,
  type MetricsRegistry,
  type Outcome,
  type PluginInstance,
  type Query,
} from "../../plugin/index.ts";
import { AclMetrics, type DenyingAction } from "./acl-metrics.ts";
import { CompiledRule, UNDECIDED } from "./compiled-rule.ts";
import type { AclPolicy, AclRule } from "./config.ts";

/** All `acl` directives of a block, in order. */
export class AccessControl implements PluginInstance {
  readonly #rules: readonly CompiledRule[];
  readonly #metrics: AclMetrics;

  constructor(rules: readonly AclRule[], metrics: MetricsRegistry) {
    this.#rules = rules.map((rule) => new CompiledRule(rule));
    this.#metrics = new AclMetrics(metrics);
  }

  readonly handle: Handler = (query, next) => {
    const client = query.client.octets;
    for (const compiled of this.#rules) {
      const zone = compiled.rule.zones.matchQuery(query);
      if (zone === undefined) continue;
      const place = compiled.decide(query.type, client);
      const policy = place === UNDECIDED ? undefined : compiled.rule.policies[place];
      if (policy === undefined) continue;
      query.trace?.note(describe(query, compiled, policy, place), {
        action: policy.action,
        line: policy.line,
        zone: `${zone}`,
      });
      if (policy.action === "allow") break;
      return this.#deny(query, policy.action, zone);
    }
    if (query.trace?.leavesNoMark !== true) this.#metrics.allowed(query).increment();
    return next(query);
  };

  readonly handleUpdate: Handler = this.handle;

  #deny(query: Query, action: DenyingAction, zone: Name): Outcome {
    if (query.trace?.leavesNoMark !== true) this.#metrics.denied(query, action, zone).increment();
    if (action === "block") return query.reply({ rcode: Rcode.REFUSED, edns: BLOCKED });
    if (action === "filter") return query.reply({ edns: FILTERED });
    return DROPPED;
  }
}

/** Sent to clients without EDNS as well, as CoreDNS does. */
function optWith(infoCode: number): Edns {
  return Object.freeze({ udpSize: 4096, version: 0, dnssecOk: true, options: [extendedError(infoCode)] });
}

const BLOCKED = optWith(ExtendedErrorCode.BLOCKED);
const FILTERED = optWith(ExtendedErrorCode.FILTERED);

function describe(query: Query, rule: CompiledRule, policy: AclPolicy, place: number): string {
  const network = rule.networkOf(place, query.client.octets);
  const who =
    network === undefined ? "all clients" : `clients in ${network}, ${query.client.address} among them`;
  const what = policy.types === undefined ? "all types" : `type ${recordTypeName(query.type)}`;
  return `line ${policy.line}: '${policy.action}' for ${who}, and for ${what}`;
}
