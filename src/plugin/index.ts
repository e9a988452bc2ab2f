/**
 * `portolan/plugin`: all that the author of a plugin imports, beside the protocol (`portolan/dns`). What the built-in plugins use of
 * the server is here as well; `scripts/public-contract.test.ts` sees to it. Asking upstreams and knowing the cluster are libraries of
 * some of them and no part of the contract.
 */

export type {
  Diagnostic,
  DiagnosticDetails,
  DiagnosticSink,
  Severity,
  Span,
} from "../corefile/diagnostic.ts";
export type { Scheme, ServerKey } from "../corefile/server-key.ts";
export type { Token, TokenKind } from "../corefile/tokens.ts";
export type { Directive } from "../corefile/tree.ts";
export type {
  Environment,
  EnvironmentFunction,
  EnvironmentVariable,
  KnownArgument,
} from "../expression/evaluation/environment.ts";
export type { Expression } from "../expression/expression.ts";
export type { ExplainedPart } from "../expression/functions/reasons.ts";
export type { Template } from "../expression/templates/template.ts";
export type { TemplateValue } from "../expression/templates/template-value.ts";
export { LanguageError, type Stage } from "../expression/values/language-error.ts";
export type { Kind as ExpressionKind, Type as ExpressionType } from "../expression/values/types.ts";
export type { Value as ExpressionValue } from "../expression/values/values.ts";
export { readTextFile } from "../lib/files/bounded-file.ts";
export { fileFault } from "../lib/files/file-fault.ts";
export { DiskFileReader, FileWatch, type ReadFile } from "../lib/files/file-watch.ts";
export type { ClientAuthentication, IdentityHolder, ServerIdentity } from "../lib/files/server-identity.ts";
export type { LevelSetting, LogFields, Logger, LogLevel, SettableLevel } from "../lib/logging/log.ts";
export type { CellRange } from "../lib/metrics/metric-cells.ts";
export type {
  AnyMetricFamily,
  CounterFamily,
  GaugeDefinition,
  GaugeFamily,
  HistogramDefinition,
  HistogramFamily,
  MetricDefinition,
  MetricType,
  Series,
} from "../lib/metrics/metric-families.ts";
export { DURATION_BUCKETS, SIZE_BUCKETS, SLIM_DURATION_BUCKETS } from "../lib/metrics/metric-families.ts";
export type { CounterSlot, Exemplar, GaugeSlot, HistogramSlot } from "../lib/metrics/metric-slots.ts";
export type { MetricSnapshot, SeriesSnapshot } from "../lib/metrics/metric-snapshot.ts";
export type { MetricSource, MetricsRegistry } from "../lib/metrics/metrics.ts";
export type { Exposition, ExpositionFormat } from "../lib/metrics/metrics-exposition.ts";
export {
  formatIpAddress,
  formatIpv4,
  formatIpv6,
  isIpv4Mapped,
  parseIpAddress,
  parseIpv4,
  parseIpv6,
  parseScopedIpAddress,
} from "../lib/net/ip-address.ts";
export { type IpPrefix, PrefixSet, parseIpPrefix } from "../lib/net/prefix-set.ts";
export { NO_PREFIX, PrefixTrie } from "../lib/net/prefix-trie.ts";
export { nearestWord } from "../lib/text/nearest-word.ts";
export { formatOctetCount, parseOctetCount } from "../lib/text/octet-count.ts";
export { compilePattern, Pattern, PatternError, type PatternMatch } from "../lib/text/pattern.ts";
export { BackOff, type BackOffOptions } from "../lib/time/back-off.ts";
export type { Clock, Timer } from "../lib/time/clock.ts";
export { formatGoDuration, parseGoDuration } from "../lib/time/duration.ts";
export { type PacedStep, PacedSteps } from "../lib/time/paced-steps.ts";
export { type TimeoutHandle, type TimeoutTarget, TimeoutWheel } from "../lib/time/timeout-wheel.ts";
export { TurnShare } from "../lib/time/turn-share.ts";
export { AnswerMemo } from "./answer-memo.ts";
export type { Asked } from "./asked.ts";
export { CACHE, type CachedAnswer, type CacheView } from "./cache-view.ts";
export type { ClusterClients } from "./cluster-clients.ts";
export type { ArgumentsOf } from "./config/argument-table.ts";
export {
  type Argument,
  type ArgumentCursor,
  INVALID,
  type Invalid,
  optional,
  optionalWhen,
  overlooked,
  required,
  rest,
  restTokens,
  zones,
} from "./config/arguments.ts";
export type { ConfigContext } from "./config/context.ts";
export { fallthrough, flag, ignored, type Option, option, optionList, single } from "./config/options.ts";
export {
  bareDirective,
  type ConfigSchema,
  customDirective,
  type DirectiveDescription,
  directive,
  merged,
  type OptionsOf,
} from "./config/schema.ts";
export { placeInTokens, readExpression, readTemplate } from "./config/source-text.ts";
export { tlsFiles } from "./config/tls-files.ts";
export {
  choice,
  domainName,
  duration,
  type HostPort,
  hostPort,
  integer,
  ipAddress,
  listenAddress,
  octetCount,
  parseHostPort,
  parseZones,
  percentage,
  rcode,
  recordType,
  text,
  type Value,
  ValueProblem,
} from "./config/values.ts";
export { definePlugin, type PluginDefinition, type SetupContext, SetupError } from "./define-plugin.ts";
export type { QueryChanges } from "./derived-octets.ts";
export { type Endpoint, FixedEndpoint, type TraceHeaders, type TransportName } from "./endpoint.ts";
export {
  ExplainError,
  type ExplainedMessage,
  type ExplainedServer,
  type ExplainQuestion,
  type Explanation,
  QUERY_FLAGS,
  type QueryFlag,
  type Step,
} from "./explanation.ts";
export { followAlias } from "./follow-alias.ts";
export { type Greeting, GreetingError, type GreetingReading } from "./greeting.ts";
export { afterNext, afterwards, type Handler, type Next, type Review, type Reviewer } from "./handler.ts";
export { type LateFollower, LateOutcome } from "./late-outcome.ts";
export { LATENCY_EXEMPLARS, type LatencyExemplars } from "./latency-exemplars.ts";
export {
  COMBINED_FORMAT,
  COMMON_FORMAT,
  flagNames,
  flagsToSend,
  LineFormat,
  placeholderProblem,
  type UnknownPlaceholder,
  unknownPlaceholders,
} from "./line-format.ts";
export { LookupDepthError } from "./lookup-depth.ts";
export type { MessageSeal } from "./message-seal.ts";
export { DROPPED, type Dropped, Failure, NoNextPluginError, type Outcome, ReplyStream } from "./outcome.ts";
export type { PlacedPlugin, PluginInstance } from "./plugin-instance.ts";
export {
  type Arrival,
  type ChainLink,
  type LateSteps,
  type Listener,
  Query,
  type Waiter,
} from "./query.ts";
export { QUERY_ENVIRONMENT, queryFunctions } from "./query-environment.ts";
export { type FinishedQuery, QueryReader } from "./query-reader.ts";
export { makeRingBuffer, type QueryRing } from "./query-ring.ts";
export { type QueryListening, QueryStream, RING_OCTETS } from "./query-stream.ts";
export { type ForwardedExchange, QUERY_TAP, type QueryTap } from "./query-tap.ts";
export { rehearsalQuery } from "./rehearsal.ts";
export type { AnswerBasis, AnswerSource, AnswerWitness, RepeatedQuery, Repetition } from "./repetition.ts";
export { Reply, type ReplyContent } from "./reply.ts";
export {
  authorityHolds,
  minimalTtl,
  type ResponseClass,
  type ResponseType,
  responseClass,
  responseType,
} from "./response-type.ts";
export type { SearchPath, SearchPathSource } from "./search-path.ts";
export type {
  BlockView,
  ConfigurationView,
  DiagnosticView,
  PlaceView,
  RefusalView,
  ServerView,
} from "./server-view.ts";
export { staysInForce } from "./server-view.ts";
export { type Offer, type OfferingPlugin, ServiceKey } from "./service.ts";
export {
  type BlockSettings,
  type BlockSite,
  type Feed,
  feedToNobody,
  type HttpEndpoint,
  type HttpHandler,
  type HttpService,
  type ListenerSite,
  type Machine,
  type Random,
  reachableHost,
  type ServerControl,
  type Site,
} from "./site.ts";
export type { SpanSink, Trace } from "./trace.ts";
export { readTraceContext, type TraceContext } from "./trace-context.ts";
export { TRACING, type TraceRule, type TracingView } from "./tracing-view.ts";
export {
  isAsNew,
  type StartOfAuthority,
  type TransferSource,
  transferRecords,
  transferWay,
  ZoneNotLoadedError,
  type ZoneTransfer,
} from "./transfer.ts";
export { TSIG_KEYS, tsigKeyNamed } from "./tsig-keys.ts";
export { Fallthrough, ZoneList } from "./zones.ts";
