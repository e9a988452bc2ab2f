/** The exit codes of commands, for their usage and manual pages. */

const DAEMON = "0 ended by a signal, 1 cannot start, 2 wrong command line";

export const EXIT_CODES = {
  check: "0 no errors, 1 errors (with -strict warnings too), 2 nothing could be checked",
  fmt: "0 done, 1 with -check if a file is not formatted, 2 something cannot be formatted",
  explain: "0 explained, whatever the answer, 2 nothing could be explained",
  doctor: "0 nothing is wrong, 1 something is wrong, 2 nothing could be examined",
  live: "0 done, 2 the server cannot be asked, or wrong command line",
  test: "0 all passed, 1 some failed, 2 some could not be run",
  migrate: "0 done, 1 the result has errors (portolan check), 2 nothing could be migrated",
  daemon: DAEMON,
  help: "0 shown, 2 there is nothing of that name",
  zone: "0 no errors, or no differences, 1 errors or differences, 2 a file cannot be read",
  plugin: "0 done, 1 tests failed, 2 nothing could be done",
  completion: "0 printed, 2 no such shell",
} as const;

/** The last line of a usage. */
export function exitCodesLine(of: keyof typeof EXIT_CODES): string {
  return `Exit codes: ${EXIT_CODES[of]}.`;
}
