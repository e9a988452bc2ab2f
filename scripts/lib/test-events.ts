/** What the reporter writes about one run of the test runner: one JSON object a line, each written at once. */
export type TestEventLine =
  | { readonly kind: "passed" }
  | ({ readonly kind: "skipped" } & SkippedTest)
  | TestFailure
  /** A connection without an error listener: an error of it would end the process, and be counted against another test. */
  | { readonly kind: "careless"; readonly text: string }
  | { readonly kind: "warning"; readonly text: string }
  /** All tests are done, and the process still does not end because of these resources. */
  | { readonly kind: "left-open"; readonly resources: readonly string[] }
  /** The runner's own counts, which come last. */
  | ({ readonly kind: "summary"; readonly success: boolean } & Counts);

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

interface NamedTest {
  /** "src/dns/name.test.ts:14", relative to the working directory. */
  readonly place: string;
  /** The test's name behind those of its suites: "parse > refuses an empty label". */
  readonly name: string;
}

export interface SkippedTest extends NamedTest {
  /** Empty where the test gives no reason. */
  readonly reason: string;
}

export interface TestFailure extends NamedTest {
  readonly kind: "failed";
  /** False for a suite, which the runner does not count. */
  readonly counted: boolean;
  readonly error: string;
}

/** The environment variable with the path of the file that the reporter writes. */
export const EVENTS_FILE_VARIABLE = "PORTOLAN_TEST_EVENTS";

/** The environment variable with the milliseconds that the process has to end after its last test. */
export const ENDING_TIME_VARIABLE = "PORTOLAN_TEST_ENDING_TIME";

/**
 * The environment variable with the limit, in bytes, above which a test process frees unreferenced buffers;
 * `test-guard.mjs` reads it.
 */
export const MEMORY_VARIABLE = "PORTOLAN_TEST_MEMORY";
