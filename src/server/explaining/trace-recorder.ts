/** Records the path of one query: the plugins it went through, their notes and outcomes, and the time in each. */
import { recordTypeName } from "../../dns/type-names.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { Trace, TraceStep } from "../../plugin/query/trace.ts";

/** One pass of the query through one plugin. */
export interface Visit {
  readonly plugin: string;
  /** The question's name and type as text. */
  readonly asked: string | undefined;
  /** `Clock.now()`, milliseconds. */
  readonly enteredAt: number;
  /** `undefined` while the plugin has not answered, or when it threw. */
  leftAt: number | undefined;
  /** As the chain puts it: `reply 0`, `failed 2`, `dropped`. `undefined` while {@link leftAt} is. */
  outcome: string | undefined;
  /** In the order in which they were recorded. */
  readonly steps: TraceStep[];
  /** The plugins that this one called, and its lookups. */
  readonly inner: (Visit | Lookup)[];
}

/** A choice of server block: the client's query itself, or a lookup that a plugin made through the server. */
export interface Lookup {
  /** The question as text. */
  readonly question: string;
  /** The server block as text; `undefined` when no block takes the question. */
  readonly block: string | undefined;
  /** The view that took the question, else empty. */
  readonly view: string;
  /** Set for plugins that had no part in the answer: the reason why they ran. */
  readonly aside?: string;
  readonly visits: (Visit | Lookup)[];
}

export function isLookup(entry: Visit | Lookup): entry is Lookup {
  return "question" in entry;
}

/** Whether the entry is a filter: a plugin that decided, in front of the chain, whether its block takes the query. */
function isFilter(entry: Visit | Lookup): boolean {
  return !isLookup(entry) && (entry.outcome === "accepts" || entry.outcome === "declines");
}

/** The most plugins and notes that one trace keeps: a plugin may look up names without end. */
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

  /** @param leavesNoMark for a query to a server that has clients */
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
    // Entries above threw, so the chain never reported that the query left them.
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
    // Only the client's own query begins outside a plugin.
    if (this.#open.length === 0) this.#lookup = lookup;
  }

  aside(text: string): void {
    if (this.#open.length > 0)
      this.#add({ question: "", block: undefined, view: "", aside: text, visits: [] });
  }

  /** All plugins in the order in which the query met them. */
  get visits(): Visit[] {
    return this.entries.flatMap(visitsOf);
  }

  #add(entry: Visit | Lookup): void {
    if (++this.#count > MAX_ENTRIES) return;
    const visit = this.#open.at(-1);
    const siblings = visit?.inner ?? this.#lookup?.visits ?? this.entries;
    // The steps of a lookup are its children.
    const last = visit === undefined ? undefined : siblings.at(-1);
    if (last !== undefined && isLookup(last) && last.visits.every(isFilter) && !isLookup(entry))
      last.visits.push(entry);
    else siblings.push(entry);
  }
}

/** The plugins of an entry and of the entries inside it. */
export function visitsOf(entry: Visit | Lookup): Visit[] {
  if (isLookup(entry)) return entry.visits.flatMap(visitsOf);
  return [entry, ...entry.inner.flatMap(visitsOf)];
}

/** Milliseconds spent in plugins that had no part in the answer. */
export function asideTime(entries: readonly (Visit | Lookup)[]): number {
  return entries.reduce((sum, entry) => {
    if (!isLookup(entry)) return sum + asideTime(entry.inner);
    if (entry.aside === undefined) return sum + asideTime(entry.visits);
    return sum + visitsOf(entry).reduce((all, visit) => all + (ownTime(visit) ?? 0), 0);
  }, 0);
}

/** Milliseconds spent in the plugin itself, without the plugins behind it; `undefined` if it never returned. */
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
