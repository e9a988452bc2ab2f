// Runs inside of a measured server (NODE_OPTIONS=--import), in each of its threads: notes how long turns of the event loop and collections took.
import { appendFileSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { createRequire } from "node:module";
import { PerformanceObserver, performance } from "node:perf_hooks";
import { isMainThread, threadId } from "node:worker_threads";

/** Milliseconds between two lines. */
const WRITE_EVERY = 500;
/** Microseconds between two looks at what runs, where turns are to be explained. */
const SAMPLE_EVERY = 200;
/** How many of the longest turns are explained. */
const EXPLAINED = 10;
/** Milliseconds on the processor: turns that took more are counted. */
const LONG = 5;
/** Numbers that the library gives for each collection. */
const NUMBERS = 4;
const MOST_COLLECTIONS = 1024;
/** Of `turn_facts`, and the room for what it writes. */
const FACTS = 7;
const STACKS_OCTETS = 8192;
/** Of dlopen(3). */
const RTLD_NOW = 2;
/** `GCType` of V8. */
const ALL_TYPES = 0xffff;

/**
 * Milliseconds.
 * @typedef {{ type: number, from: number, wall: number, processor: number }} Collection
 * @typedef {{ longest: { collection: number, collectionProcessor?: number }, list: Collection[] }} Taken
 * @typedef {import("./memory-results.ts").LongTurn} LongTurn
 */

const NOTHING = { wall: 0, processor: 0 };

const { BENCH_PAUSES: file, BENCH_PROCESSOR_CLOCK: library, BENCH_TURNS: turnsFile } = process.env;
if (file !== undefined) {
  const { collections, processorTime, turns } = library === undefined ? byNode() : byLibrary(library);
  const explanation = turnsFile === undefined || !isMainThread ? undefined : explainTurns(turnsFile);
  /** Milliseconds: by the clock, of these without work, and of this thread on a processor. */
  const readClocks = () => ({
    wall: performance.now(),
    idle: performance.nodeTiming.idleTime,
    processor: processorTime(),
  });
  let turn = 0;
  let longest = 0;
  let long = 0;
  let counts = new Map();
  /** @type {LongTurn[]} */
  let longTurns = [];
  /** What the turn had taken before the probe wrote in the middle of it. */
  let carried = { wall: 0, processor: 0 };
  let since = readClocks();
  // Measures from the immediates of one turn to those of the next: all that may happen between two polls, without the
  // time that poll waited. `monitorEventLoopDelay` has a resolution of a millisecond, and does not show time that
  // other processes took.
  const look = () => {
    setImmediate(look).unref();
    const now = readClocks();
    const wall = carried.wall + now.wall - since.wall - (now.idle - since.idle);
    const processor = carried.processor + now.processor - since.processor;
    carried = NOTHING;
    if (processor > LONG) longTurns.push({ at: Date.now(), processor, wall, ...turns?.facts() });
    turns?.begin();
    explanation?.note(processor, since.wall, now.wall);
    turn = Math.max(turn, wall);
    longest = Math.max(longest, processor);
    if (processor > LONG) long++;
    // Eighths of a power of two of microseconds.
    const bucket = Math.ceil(8 * Math.log2(Math.max(1, processor * 1000)));
    counts.set(bucket, (counts.get(bucket) ?? 0) + 1);
    since = now;
  };
  setImmediate(look).unref();
  turns?.begin();
  setInterval(() => {
    const before = readClocks();
    carried = {
      wall: before.wall - since.wall - (before.idle - since.idle),
      processor: before.processor - since.processor,
    };
    const taken = collections.take();
    const line = {
      thread: threadId,
      turn,
      processor: longest,
      long,
      longTurns,
      counts: [...counts],
      ...taken.longest,
    };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
    turn = longest = long = 0;
    longTurns = [];
    counts = new Map();
    explanation?.write(taken.list);
    // The probe's own time belongs to no turn.
    since = readClocks();
  }, WRITE_EVERY).unref();
}

/** As Node tells: turns by the kernel's ticks, and in collections whoever else had the processor meanwhile counts as well. */
function byNode() {
  let collection = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) collection = Math.max(collection, duration);
  }).observe({ entryTypes: ["gc"] });
  return {
    processorTime: () => {
      const { user, system } = process.threadCpuUsage();
      return (user + system) / 1000;
    },
    turns: undefined,
    collections: {
      /** @returns {Taken} */
      take() {
        const longest = { collection };
        collection = 0;
        return { longest, list: [] };
      },
    },
  };
}

/** @param {string} path of processor-clock.c, compiled */
function byLibrary(path) {
  const koffi = createRequire(import.meta.url)("koffi");
  const node = koffi.load(null);
  const clock = koffi.load(path);
  const address = node.func("uintptr_t dlsym(uintptr_t, const char *)");
  const open = node.func("uintptr_t dlopen(const char *, int)")(path, RTLD_NOW);
  const isolate = node.func("_ZN2v87Isolate10GetCurrentEv", "uintptr_t", [])();
  for (const [add, callback] of [
    [
      "_ZN2v87Isolate21AddGCPrologueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEES2_",
      "collection_begins",
    ],
    ["_ZN2v87Isolate21AddGCEpilogueCallbackEPFvPS0_NS_6GCTypeENS_15GCCallbackFlagsEES2_", "collection_ends"],
  ])
    node.func(add, "void", ["uintptr_t", "uintptr_t", "int"])(isolate, address(open, callback), ALL_TYPES);
  const take = clock.func("int take_collections(double *, int)");
  const numbers = new Float64Array(MOST_COLLECTIONS * NUMBERS);
  const begin = clock.func("void turn_begins()");
  const readFacts = clock.func("void turn_facts(double *, char *, int)");
  const facts = new Float64Array(FACTS);
  const text = Buffer.alloc(STACKS_OCTETS);
  const isSampled = clock.func("int sample_thread()")() === 1;
  return {
    turns: {
      /** @type {() => void} */
      begin,
      facts() {
        readFacts(facts, text, text.length);
        const [user, system, faults, reads, waits, preempted, samples] = facts;
        const stacks = text.toString("latin1", 0, text.indexOf(0));
        return { user, system, faults, reads, waits, preempted, ...(isSampled && { samples, stacks }) };
      },
    },
    /** @type {() => number} */
    processorTime: clock.func("double thread_processor()"),
    collections: {
      /** @returns {Taken} */
      take() {
        const list = [];
        const longest = { collection: 0, collectionProcessor: 0 };
        const count = take(numbers, MOST_COLLECTIONS);
        for (let at = 0; at < count * NUMBERS; at += NUMBERS) {
          const [type = 0, from = 0, wall = 0, processor = 0] = numbers.subarray(at, at + NUMBERS);
          list.push({ type, from, wall, processor });
          longest.collection = Math.max(longest.collection, wall);
          longest.collectionProcessor = Math.max(longest.collectionProcessor, processor);
        }
        return { longest, list };
      },
    },
  };
}

/**
 * Records the longest turns, and what ran in them. Writes them when a file with the ending `.take` appears, and
 * deletes that file.
 * @param {string} path
 */
function explainTurns(path) {
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.setSamplingInterval", { interval: SAMPLE_EVERY });
  session.post("Profiler.start");
  // `performance.now` and the profile count from different moments.
  const origin = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  /** @type {{ processor: number, from: number, to: number }[]} */
  let turns = [];
  /** @type {Collection[]} */
  let collections = [];
  return {
    /**
     * @param {number} processor
     * @param {number} from
     * @param {number} to
     */
    note(processor, from, to) {
      if (processor <= (turns[EXPLAINED - 1]?.processor ?? 0)) return;
      turns.push({ processor, from: from + origin, to: to + origin });
      turns.sort((one, other) => other.processor - one.processor);
      turns.length = Math.min(turns.length, EXPLAINED);
    },
    /** @param {readonly Collection[]} list */
    write(list) {
      for (const each of list) if (each.wall > 1) collections.push(each);
      if (!existsSync(`${path}.take`)) return;
      session.post("Profiler.stop", (_, { profile }) => {
        writeFileSync(path, JSON.stringify({ turns, collections, profile }));
        turns = [];
        collections = [];
        rmSync(`${path}.take`);
        session.post("Profiler.start");
      });
    },
  };
}
