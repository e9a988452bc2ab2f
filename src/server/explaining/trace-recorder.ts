/** Keeps the way of one query: which plugins it went through, what they said, how long each took, what came back. */
import { recordTypeName } from "../../dns/type-names.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { Trace, TraceStep } from "../../plugin/query/trace.ts";

/** One stay of the query in one plugin. */
export interface Visit {
  readonly plugin: string;
  /** Name and type that it was asked for, in words. */
  readonly asked: string | undefined;
  /** `Clock.now()`, milliseconds. */
  readonly enteredAt: number;
  /** `undefined` while the plugin has not answered, or when it threw. */
  leftAt: number | undefined;
  /** As the chain puts it: `reply 0`, `failed 2`, `dropped`. `undefined` as {@link leftAt}. */
  outcome: string | undefined;
  /** In the order in which they were made. */
  readonly steps: TraceStep[];
  /** Plugins that this one called, and lookups that it made. */
  readonly inner: (Visit | Lookup)[];
}

/** A choice of server block: the client's query itself, or a lookup that a plugin made through the server. */
export interface Lookup {
  /** What was asked, in words. */
  readonly question: string;
  /** The server block, in words; `undefined` when none takes the question. */
  readonly block: string | undefined;
  /** The view that took the question, else empty. */
  readonly view: string;
  readonly visits: (Visit | Lookup)[];
}

export function isLookup(entry: Visit | Lookup): entry is Lookup {
  return "question" in entry;
}

/** Whether the entry is a plugin that said whether its block takes the query, in front of the chain. */
function isFilter(entry: Visit | Lookup): boolean {
  return !isLookup(entry) && (entry.outcome === "accepts" || entry.outcome === "declines");
}

/** Plugins and notes that one trace keeps at the most: a plugin may ask the server again and again. */
const MAX_ENTRIES = 1_000;

export class TraceRecorder implements Trace {
  /** The outermost entries, in order. */
  readonly entries: (Visit | Lookup)[] = [];
  /** Notes made outside of any plugin. */
  readonly steps: TraceStep[] = [];
  readonly #clock: Clock;
  readonly #open: Visit[] = [];
  #lookup: Lookup | undefined;
  #count = 0;
  readonly leavesNoMark: boolean;

  /** @param leavesNoMark for a question to a server that serves others as well */
  constructor(clock: Clock, leavesNoMark = false) {
    this.#clock = clock;
    this.leavesNoMark = leavesNoMark;
  }

  enter(plugin: string, query?: Pick<Query, "name" | "type">): void {
    const visit: Visit = {
      plugin,
      asked: query && `${query.name} ${recordTypeName(query.type)}`,
      enteredAt: this.#clock.now(),
      leftAt: undefined,
      outcome: undefined,
      steps: [],
      inner: [],
    };
    this.#add(visit);
    this.#open.push(visit);
  }

  leave(plugin: string, outcome: string): void {
    const index = this.#open.findLastIndex((visit) => visit.plugin === plugin);
    const visit = this.#open[index];
    if (visit === undefined) return;
    // What stands above threw, and the chain could not say that it was left.
    this.#open.length = index;
    visit.leftAt = this.#clock.now();
    visit.outcome = outcome;
  }

  note(text: string, facts?: Readonly<Record<string, unknown>>): void {
    if (++this.#count > MAX_ENTRIES) return;
    const visit = this.#open.at(-1);
    const step: TraceStep = { plugin: visit?.plugin ?? "", at: this.#clock.now(), note: text, facts };
    (visit?.steps ?? this.steps).push(step);
  }

  /** The server chose a block. */
  routed(question: string, block: string | undefined, view = ""): void {
    const lookup: Lookup = { question, block, view, visits: [] };
    this.#add(lookup);
    // Only the client's own query begins outside of a plugin.
    if (this.#open.length === 0) this.#lookup = lookup;
  }

  /** All plugins in the order in which the query met them. */
  get visits(): Visit[] {
    return this.entries.flatMap(visitsOf);
  }

  #add(entry: Visit | Lookup): void {
    if (++this.#count > MAX_ENTRIES) return;
    const visit = this.#open.at(-1);
    const siblings = visit?.inner ?? this.#lookup?.visits ?? this.entries;
    // What a lookup leads to stands below it.
    const last = visit === undefined ? undefined : siblings.at(-1);
    if (last !== undefined && isLookup(last) && last.visits.every(isFilter) && !isLookup(entry))
      last.visits.push(entry);
    else siblings.push(entry);
  }
}

/** An entry's plugins and those behind them. */
export function visitsOf(entry: Visit | Lookup): Visit[] {
  if (isLookup(entry)) return entry.visits.flatMap(visitsOf);
  return [entry, ...entry.inner.flatMap(visitsOf)];
}

/** Milliseconds that a plugin took itself, without those behind it; `undefined` when it never came to an end. */
export function ownTime(visit: Visit): number | undefined {
  if (visit.leftAt === undefined) return undefined;
  const total = visit.leftAt - visit.enteredAt;
  const behind = visit.inner
    .flatMap((entry) => (isLookup(entry) ? entry.visits : [entry]))
    .reduce(
      (sum, entry) =>
        sum + (isLookup(entry) || entry.leftAt === undefined ? 0 : entry.leftAt - entry.enteredAt),
      0,
    );
  return Math.max(0, total - behind);
}
