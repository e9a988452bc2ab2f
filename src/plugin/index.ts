/**
 * `portolan/plugin`: everything that the author of a plugin imports, beside the protocol (`portolan/dns`). Built-in
 * plugins import these names from here as well. Whatever else they use, they import from its own file, and it is not
 * part of the public API. docs/plugins.md has a line for each name.
 * @module portolan/plugin
 */

export type { Logger } from "../lib/logging/log.ts";
export type { CounterFamily } from "../lib/metrics/metric-families.ts";
export type { CounterSlot, GaugeSlot, HistogramSlot } from "../lib/metrics/metric-slots.ts";
export type { MetricsRegistry } from "../lib/metrics/metrics.ts";
export type { Clock, Timer } from "../lib/time/clock.ts";
export { afterNext, afterwards, type Handler, type Next } from "./chain/handler.ts";
export { optional, required, rest, zones } from "./config/arguments.ts";
export { fallthrough, flag, option, optionList, single } from "./config/options.ts";
export { bareDirective, type ConfigSchema, customDirective, directive, merged } from "./config/schema.ts";
export {
  choice,
  domainName,
  duration,
  hostPort,
  integer,
  ipAddress,
  listenAddress,
  octetCount,
  rcode,
  recordType,
  text,
  type Value,
  ValueProblem,
} from "./config/values.ts";
export { definePlugin, type PluginDefinition, SetupError } from "./contract/define-plugin.ts";
export type { PlacedPlugin, PluginInstance } from "./contract/plugin-instance.ts";
export { ServiceKey } from "./contract/service.ts";
export type { HttpHandler, Random, Site } from "./contract/site.ts";
export type { TransferSource } from "./contract/transfer.ts";
export { followAlias } from "./query/follow-alias.ts";
export { DROPPED, Failure, type Outcome, ReplyStream } from "./query/outcome.ts";
export { Query } from "./query/query.ts";
export type { AnswerWitness } from "./query/repetition.ts";
export { Reply, type ReplyContent } from "./query/reply.ts";
export { Fallthrough, ZoneList } from "./query/zones.ts";
