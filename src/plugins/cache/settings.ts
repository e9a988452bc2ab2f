/** The settings of `cache`, with all defaults filled in. */
import type { Name } from "../../dns/name.ts";
import { formatOctetCount } from "../../lib/text/octet-count.ts";
import { ZoneList } from "../../plugin/index.ts";
import type { CacheDirective, CapacityOption } from "./directive.ts";
import { cacheBounds, effectiveCapacity, memoryWithin } from "./slab-bounds.ts";

export interface CacheSettings {
  readonly zones: ZoneList;
  readonly success: StoreSettings;
  readonly denial: StoreSettings;
  /** Seconds for which SERVFAIL and NOTIMP are cached; 0 to cache none. */
  readonly servfailTtl: number;
  readonly prefetch: PrefetchSettings | undefined;
  readonly stale: StaleSettings | undefined;
  /** Whether answers show their original TTL until they expire. */
  readonly keepTtl: boolean;
  /** Bytes for both caches together; `undefined` for the default. */
  readonly memory: number | undefined;
}

/** Seconds. */
export interface TtlLimits {
  readonly minTtl: number;
  readonly maxTtl: number;
}

export interface StoreSettings extends TtlLimits {
  /** Entries. */
  readonly capacity: number;
  /** Zones whose answers are not cached. */
  readonly except: ZoneList;
}

export interface PrefetchSettings {
  /** Hits that make an answer popular, each within `windowMs` of the previous one. */
  readonly amount: number;
  readonly windowMs: number;
  /** Share of the TTL that is left when a popular answer is refreshed. */
  readonly percentage: number;
}

export interface StaleSettings {
  /** How long after it expires an answer may still be served. */
  readonly windowMs: number;
  /** Whether the rest of the chain is queried before an expired answer is served, instead of afterwards. */
  readonly verify: boolean;
  /** How long a client waits for that; `Infinity` for no limit. */
  readonly verifyTimeoutMs: number;
  /** TTL in seconds of expired answers. */
  readonly responseTtl: number;
  /** How long a failed refresh is not repeated. */
  readonly failureRecheckMs: number;
  /** `serve_stale_policy prefer_positive`. */
  readonly preferPositive: boolean;
}

/**
 * Makes the settings of a directive that was parsed without errors. @param memoryLimit memory limit of the process in
 * bytes: see {@link memoryWithin}
 */
export function settingsOf(directive: CacheDirective, memoryLimit?: number): CacheSettings {
  const { ttl, zones } = directive;
  const success = storeSettings(
    directive.success,
    ttl ?? DEFAULT_SUCCESS_TTL,
    exceptions(directive, "success"),
  );
  const denial = storeSettings(directive.denial, ttl ?? DEFAULT_DENIAL_TTL, exceptions(directive, "denial"));
  return {
    zones,
    success,
    denial,
    servfailTtl: Math.floor(directive.servfail / 1000),
    prefetch: prefetchSettings(directive),
    stale: staleSettings(directive),
    keepTtl: directive.keepttl,
    memory: memoryWithin(success.capacity, denial.capacity, directive.memory, memoryLimit),
  };
}

/** Describes the options of a directive that cannot be honoured in full. */
export function unmetWishes(
  { memory: asked }: Pick<CacheDirective, "memory">,
  { success, denial, memory }: Pick<CacheSettings, "success" | "denial" | "memory">,
  memoryLimit: number | undefined,
): string[] {
  const wishes: string[] = [];
  if (asked !== undefined && memory !== undefined && memory < asked && memoryLimit !== undefined)
    wishes.push(
      `memory ${formatOctetCount(asked)} is more than half of the memory limit of ${formatOctetCount(memoryLimit)}: the cache takes ${formatOctetCount(memory)}`,
    );
  const bounds = cacheBounds(success.capacity, denial.capacity, memory);
  if (bounds.success.capacity < success.capacity || bounds.denial.capacity < denial.capacity)
    wishes.push(
      `${formatOctetCount(memory ?? 0)} is too small for ${success.capacity} successes and ${denial.capacity} denials: it has room for ${bounds.success.capacity} and ${bounds.denial.capacity}`,
    );
  return wishes;
}

const DEFAULT_SUCCESS_TTL = 3600;
const DEFAULT_DENIAL_TTL = 1800;
const DEFAULT_MIN_TTL = 5;
const DEFAULT_STALE_WINDOW_MS = 3_600_000;

function storeSettings(option: CapacityOption | undefined, maxTtl: number, except: ZoneList): StoreSettings {
  return {
    capacity: effectiveCapacity(option?.capacity),
    maxTtl: option?.ttl ?? maxTtl,
    minTtl: option?.minttl ?? DEFAULT_MIN_TTL,
    except,
  };
}

function prefetchSettings({ prefetch }: CacheDirective): PrefetchSettings | undefined {
  if (prefetch === undefined || prefetch.amount === 0) return undefined;
  return { amount: prefetch.amount, windowMs: prefetch.duration, percentage: prefetch.percentage };
}

function staleSettings(directive: CacheDirective): StaleSettings | undefined {
  const { serve_stale: stale, serve_stale_policy: policy } = directive;
  if (stale === undefined || stale.duration === 0) return undefined;
  const { mode, verifyTimeout, responseTtl, failureRecheck } = stale.refresh;
  return {
    windowMs: stale.duration ?? DEFAULT_STALE_WINDOW_MS,
    verify: mode === "verify",
    verifyTimeoutMs: verifyTimeout === 0 ? Infinity : verifyTimeout,
    responseTtl: responseTtl / 1000,
    failureRecheckMs: failureRecheck,
    preferPositive: policy === "prefer_positive",
  };
}

function exceptions(directive: CacheDirective, kind: "success" | "denial"): ZoneList {
  const zones: Name[] = [];
  for (const line of directive.disable) if (line.kind === kind) zones.push(...line.zones.zones);
  return new ZoneList(zones);
}
