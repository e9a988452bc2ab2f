/** The grammar of `cache`. */
import type { DiagnosticSink, Span } from "../../corefile/diagnostic.ts";
import { Name } from "../../dns/name.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { formatOctetCount } from "../../lib/text/octet-count.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import {
  type Argument,
  type ArgumentCursor,
  INVALID,
  type Invalid,
  optionalWhen,
  overlooked,
} from "../../plugin/config/arguments.ts";
import type { Option } from "../../plugin/config/options.ts";
import { percentage } from "../../plugin/config/values.ts";
import {
  choice,
  directive,
  duration,
  flag,
  integer,
  octetCount,
  option,
  optional,
  optionList,
  required,
  single,
  type Value,
  ValueProblem,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";
import { effectiveCapacity, largestMemory, smallestMemory } from "./slab-bounds.ts";

/** A parsed `cache` directive; durations in milliseconds. */
export interface CacheDirective {
  readonly ttl: number | undefined;
  readonly zones: ZoneList;
  readonly success: CapacityOption | undefined;
  readonly denial: CapacityOption | undefined;
  readonly prefetch:
    | { readonly amount: number; readonly duration: number; readonly percentage: number }
    | undefined;
  readonly serve_stale: { readonly duration: number | undefined; readonly refresh: Refresh } | undefined;
  readonly serve_stale_policy: "prefer_positive" | undefined;
  readonly servfail: number;
  readonly disable: readonly { readonly kind: "success" | "denial"; readonly zones: ZoneList }[];
  readonly keepttl: boolean;
  /** Bytes. */
  readonly memory: number | undefined;
}

export interface CapacityOption {
  readonly capacity: number;
  readonly ttl: number | undefined;
  readonly minttl: number | undefined;
}

/** How an expired answer is refreshed; milliseconds. */
export interface Refresh {
  readonly mode: "immediate" | "verify";
  /** 0 to wait without a limit. */
  readonly verifyTimeout: number;
  readonly responseTtl: number;
  /** 0 to retry without a pause. */
  readonly failureRecheck: number;
}

const MINUTE = 60_000;
/** Longest time for which failures may be cached (RFC 2308 section 7). */
const MAX_FAILURE_TIME = 5 * MINUTE;
/** Largest TTL in seconds (RFC 2181 section 8). */
const MAX_TTL = 0x7fff_ffff;
const MODES = ["immediate", "verify"] as const;

/** The schema of the directive. */
export const cacheDirective = directive({
  args: {
    ttl: optionalWhen(maximumTtl(), (word) => /^[+-]?\d+$/.test(word)),
    zones: zones(),
  },
  options: {
    success: capacityOption(),
    denial: capacityOption(),
    prefetch: option({
      amount: required(integer({ min: 0 })),
      duration: optional(duration({ min: 0 }), MINUTE),
      percentage: optional(percentage({ min: 10, max: 90 }), 10),
    }),
    serve_stale: option({
      duration: optionalWhen(staleDuration(), (word) => !isMode(word.toLowerCase())),
      refresh: refreshArguments(),
    }),
    serve_stale_policy: onlyOnce(single(choice(["prefer_positive"], { ignoreCase: true }))),
    servfail: single(servfailDuration(), 5000),
    disable: optionList({ kind: required(choice(["success", "denial"])), zones: zones([Name.root]) }),
    keepttl: flag(),
    memory: single(octetCount()),
  },
  check(config, report, at) {
    checkMemory(config, report, at);
    if (config.serve_stale_policy === undefined || config.serve_stale !== undefined) return;
    report.error(
      "CACHE_POLICY_WITHOUT_STALE",
      at("serve_stale_policy"),
      "serve_stale_policy requires serve_stale",
      {
        expected: "a line serve_stale in the same block",
      },
    );
  },
});

function checkMemory(
  { memory, success, denial }: Pick<CacheDirective, "memory" | "success" | "denial">,
  report: DiagnosticSink,
  at: (option: string) => Span,
): void {
  if (memory === undefined) return;
  const capacities = [effectiveCapacity(success?.capacity), effectiveCapacity(denial?.capacity)] as const;
  const least = smallestMemory(...capacities);
  const most = largestMemory(...capacities);
  if (memory > most)
    report.warning(
      "CACHE_MEMORY_TOO_LARGE",
      at("memory"),
      "memory is more than caches of these capacities can use",
      { expected: `${formatOctetCount(most)} or less` },
    );
  if (memory >= least) return;
  report.error(
    "CACHE_MEMORY_TOO_SMALL",
    at("memory"),
    `memory ${formatOctetCount(memory)} is too little for tables of these capacities and an answer of 64 KiB`,
    { expected: `${formatOctetCount(least)} or more` },
  );
}

function capacityOption(): Option<CapacityOption | undefined> {
  return option({
    capacity: required(integer()),
    ttl: optional(maximumTtl()),
    minttl: optional(minimumTtl()),
    more: overlooked(),
  });
}

function maximumTtl(): Value<number> {
  return seconds(1, (word) => `cache TTL can not be zero or negative: ${word}`);
}

function minimumTtl(): Value<number> {
  return seconds(0, (word) => `cache min TTL can not be negative: ${word}`);
}

function seconds(min: number, tooSmall: (word: string) => string): Value<number> {
  const number = integer({ min });
  return {
    expected: `${number.expected} in seconds`,
    parse(word, context) {
      if (/^[+-]?\d+$/.test(word) && Number(word) < min) return new ValueProblem(tooSmall(word));
      const parsed = number.parse(word, context);
      // No record has a larger TTL, so a larger bound has no effect.
      return parsed instanceof ValueProblem ? parsed : Math.min(parsed, MAX_TTL);
    },
  };
}

function servfailDuration(): Value<number> {
  const inner = duration({ min: 0 });
  return {
    expected: `a duration up to ${formatGoDuration(MAX_FAILURE_TIME)}`,
    parse(word, context) {
      const parsed = inner.parse(word, context);
      if (parsed instanceof ValueProblem || parsed <= MAX_FAILURE_TIME) return parsed;
      return new ValueProblem("caching SERVFAIL responses over 5 minutes is not permitted");
    },
  };
}

function staleDuration(): Value<number> {
  const inner = duration({ min: 0 });
  return {
    expected: "a duration such as 1h, or immediate or verify",
    parse(word, context) {
      const parsed = inner.parse(word, context);
      if (!(parsed instanceof ValueProblem)) return parsed;
      return new ValueProblem(parsed.message, nearestWord(word.toLowerCase(), MODES) ?? parsed.suggestion);
    },
  };
}

/** `[immediate [RESPONSE_TTL [FAILURE_RECHECK]] | verify [VERIFY_TIMEOUT [RESPONSE_TTL [FAILURE_RECHECK]]]]` */
function refreshArguments(): Argument<Refresh> {
  return {
    read(cursor) {
      const word = cursor.take();
      const mode = word === undefined ? "immediate" : cursor.value(word, choice(MODES, { ignoreCase: true }));
      if (mode === INVALID) return INVALID;
      const verifyTimeout = mode === "verify" ? next(cursor, duration({ min: 0 })) : 0;
      if (verifyTimeout === INVALID) return INVALID;
      const responseTtl = next(cursor, wholeSeconds());
      if (responseTtl === INVALID) return INVALID;
      const failureRecheck = next(cursor, duration({ min: 0, max: MAX_FAILURE_TIME }));
      return failureRecheck === INVALID ? INVALID : { mode, verifyTimeout, responseTtl, failureRecheck };
    },
    usage: () =>
      "[immediate [RESPONSE_TTL [FAILURE_RECHECK]] | verify [VERIFY_TIMEOUT [RESPONSE_TTL [FAILURE_RECHECK]]]]",
  };
}

/** The next word as a value; 0 when there is no further word. */
function next(cursor: ArgumentCursor, value: Value<number>): number | Invalid {
  const token = cursor.take();
  return token === undefined ? 0 : cursor.value(token, value);
}

function wholeSeconds(): Value<number> {
  const inner = duration({ min: 0, max: MAX_TTL * 1000, bareSeconds: true });
  return {
    expected: "a duration of whole seconds",
    parse(word, context) {
      const parsed = inner.parse(word, context);
      if (parsed instanceof ValueProblem || parsed % 1000 === 0) return parsed;
      return new ValueProblem(`'${word}' is not a whole number of seconds: TTLs have no fractions`);
    },
  };
}

function isMode(word: string): boolean {
  return MODES.some((mode) => mode === word);
}

/** Rejects a repeated option. */
function onlyOnce<T>(inner: Option<T>): Option<T> {
  return {
    read(lines, context) {
      const [, second] = lines;
      if (second === undefined) return inner.read(lines, context);
      context.report.error(
        "CACHE_POLICY_REPEATED",
        second.name.span,
        `'${second.name.text}' may appear only once`,
      );
      return INVALID;
    },
    usage: inner.usage,
  };
}
