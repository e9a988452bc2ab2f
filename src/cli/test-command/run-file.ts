/** Runs the cases of one test file in order, against one server in this process. */
import { dirname, resolve } from "node:path";
import type { CorefileHost } from "../../corefile/host.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import { MemoryLog } from "../../lib/logging/log.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import type { Machine, Random } from "../../plugin/contract/site.ts";
import { type CorefileSource, inspectConfiguration } from "../../server/configuration/configuration.ts";
import { withSubstitutes } from "../../server/configuration/directive-substitutes.ts";
import type { PluginRegistry } from "../../server/configuration/plugin-registry.ts";
import type { ClientAnswer } from "../../server/explaining/in-process-client.ts";
import { TraceRecorder } from "../../server/explaining/trace-recorder.ts";
import { OfflineServer } from "../../server/offline-server.ts";
import { readCorefile } from "../corefile-source.ts";
import { manifestPaths } from "../manifest-paths.ts";
import { runnableCorefile } from "../runnable-corefile.ts";
import { compare, type Difference } from "./compare.ts";
import { FixtureFiles, isInline } from "./fixture-files.ts";
import { type TestCase, type TestFile, TestFileError } from "./test-file.ts";

export interface FileResult {
  readonly file: string;
  readonly cases: readonly CaseResult[];
}

export interface CaseResult {
  readonly title: string;
  readonly line: number;
  /** `web.shop.svc.cluster.local. A`. */
  readonly question: string;
  /** Empty if the case passed. */
  readonly differences: readonly Difference[];
  /** The plugins' notes, for a failed case. */
  readonly way: readonly string[];
  /** Milliseconds of real time. */
  readonly duration: number;
}

export interface RunOptions {
  readonly host: CorefileHost;
  readonly machine: Machine;
  /** Called for each file and folder that the tests depend on, besides the test file. */
  readonly uses: (path: string) => void;
  readonly registryFor: (corefile: string | undefined) => Promise<PluginRegistry>;
}

/** @throws TestFileError, ConfigurationError, UnreadableCorefile, or any error of a plugin's start */
export async function runFile(test: TestFile, options: RunOptions): Promise<FileResult> {
  const { machine } = options;
  const isText = isInline(test.corefile);
  const given = sourceOf(test, options);
  const { source, host } = isText
    ? { source: given, host: options.host }
    : await runnableCorefile(given, options.host);
  const registry = await options.registryFor(isText ? undefined : given.file);
  const read = await inspectConfiguration(source, { host, registry, machine, defaultPort: 53 });
  const { blocks } = read;
  // Keys of a ConfigMap are no files.
  const imported = read.corefile.files.slice(1).filter((path) => options.host.readFile(path).kind === "text");
  for (const path of [...imported, ...manifestPaths(blocks)]) options.uses(path);
  const fixtures = await FixtureFiles.open(test, blocks);
  try {
    const clock = new FakeClock({ wallTime: (test.fixtures.time ?? DEFAULT_TIME) - SETTLING });
    const server = await OfflineServer.start({
      source,
      registry: withSubstitutes(registry, fixtures.substitutes),
      host,
      machine,
      clock,
      random: FIRST,
      log: new MemoryLog({ debugEnabled: false }),
    });
    try {
      await clock.settle(SETTLING);
      const cases: CaseResult[] = [];
      for (const each of test.cases) cases.push(await runCase(each, test.file, server, fixtures, clock));
      return { file: test.file, cases };
    } finally {
      await server.stop();
    }
  } finally {
    await fixtures.close();
  }
}

function sourceOf({ file, corefile, fixtures }: TestFile, { uses }: RunOptions): CorefileSource {
  const folder = dirname(file);
  for (const text of fixtures.manifests ?? []) if (!isInline(text)) uses(resolve(folder, text));
  // Paths in the Corefile are relative to the folder of the tests.
  if (isInline(corefile)) return { text: corefile, file: `${file} (corefile)` };
  const path = resolve(folder, corefile);
  uses(path);
  return readCorefile(path);
}

/** Unix time, milliseconds. */
const DEFAULT_TIME = Date.UTC(2026, 0, 1);

/**
 * Milliseconds between the start and the first case, so that work that plugins postpone is done: `kubernetes` drops cached denials
 * of names that its first listing brought.
 */
const SETTLING = 5_000;

/** Tests must be repeatable: of several upstreams, the first is used. */
const FIRST: Random = { fraction: () => 0, unpredictable: () => 0x5eed };

/** Milliseconds of real time, far more than an answer needs. */
const PATIENCE = 10_000;

async function runCase(
  test: TestCase,
  file: string,
  server: OfflineServer,
  fixtures: FixtureFiles,
  clock: FakeClock,
): Promise<CaseResult> {
  const { name, type, client, overTcp, dnssecOk, title, line, expect } = test;
  const began = performance.now();
  await clock.settle(test.advance);
  const { upstreams } = fixtures;
  upstreams.forget();
  const question = { name, type, overTcp, dnssecOk, ...(client !== undefined && { client }) };
  const [listener] = test.listener === undefined ? server.listenersFor(question) : [test.listener];
  if (listener === undefined || !server.listeners.includes(listener)) {
    const known = server.listeners.join(", ") || "no address";
    throw new TestFileError(
      `${file}:${line}: nothing listens at ${listener ?? "all"}; the Corefile listens at ${known}`,
    );
  }
  const trace = new TraceRecorder(clock);
  const answer = await inTime(server.ask(listener, question, trace), clock, upstreams.someAreDown);
  const differences =
    answer === undefined
      ? [{ subject: "answer", lines: ["- an answer", `+ nothing within ${PATIENCE / 1_000} s`] }]
      : compare(
          expect,
          answer,
          upstreams.asked.map(({ upstream }) => upstream),
        );
  const unscripted = upstreams.asked.filter(({ isUnscripted }) => isUnscripted);
  const notes = trace.visits.flatMap(({ plugin, steps }) =>
    steps.map(({ note }) => `${plugin}: ${upstreams.original(note)}`),
  );
  const way = [
    ...notes,
    ...unscripted.map(
      ({ upstream, question: asked }) =>
        `${upstream} was asked for ${asked}, and fixtures.upstreams has no answers for it`,
    ),
  ];
  return {
    title,
    line,
    question: `${name} ${recordTypeName(type)}`,
    differences,
    way: differences.length === 0 ? [] : way,
    duration: performance.now() - began,
  };
}

/**
 * Waits for an answer. The clock of a test stands still. It runs only where an upstream never answers, faster than real time, so
 * that timeouts expire.
 */
async function inTime(
  asked: Promise<ClientAnswer>,
  clock: FakeClock,
  timePasses: boolean,
): Promise<ClientAnswer | undefined> {
  const ticking = timePasses ? setInterval(() => clock.advance(100), 10) : undefined;
  let deadline: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    deadline = setTimeout(() => resolve(undefined), PATIENCE);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearInterval(ticking);
    clearTimeout(deadline);
  }
}
