import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { constants } from "node:os";

/**
 * How a process ended: exactly one of the two is set.
 * @typedef {{ code: number | null, signal: NodeJS.Signals | null }} Ending
 */

/** @type {NodeJS.Signals[]} */
const FORWARDED = ["SIGINT", "SIGTERM", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGHUP"];

/** What a terminal sends to every process in its foreground, so to the child as well: Ctrl-C and Ctrl-\. */
const FROM_TERMINAL = new Set(["SIGINT", "SIGQUIT"]);

/**
 * Runs a command in the foreground: it has this process's stdin, stdout and stderr, and gets the signals that
 * this process gets, until it ends.
 *
 * A signal that the terminal sends has reached the child already. It is not sent again, as the second SIGINT
 * means "stop without waiting".
 * @param {string} command
 * @param {string[]} args
 * @param {import("node:child_process").SpawnOptions} [options]
 * @returns {{ child: import("node:child_process").ChildProcess, ended: Promise<Ending> }} `ended` rejects where
 *   the command cannot be started
 */
export function runAttached(command, args, options = {}) {
  const child = spawn(command, args, { ...options, stdio: "inherit" });
  /** @param {NodeJS.Signals} signal */
  const forward = (signal) => {
    if (!(FROM_TERMINAL.has(signal) && inTerminalForeground())) child.kill(signal);
  };
  for (const signal of FORWARDED) process.on(signal, forward);
  /** @type {Promise<Ending>} */
  const ended = new Promise((resolve, reject) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.once("error", reject);
  });
  const stopForwarding = () => {
    for (const signal of FORWARDED) process.off(signal, forward);
  };
  return { child, ended: ended.finally(stopForwarding) };
}

/**
 * Ends this process the way another one ended, so that whoever waits for it sees the same.
 * @param {Ending} ending
 */
export function endLike({ code, signal }) {
  if (signal === null) {
    process.exitCode = code ?? 1;
    return;
  }
  // Stands where the signal does not end this process: it is ignored here, or means something else to Node.
  process.exitCode = 128 + constants.signals[signal];
  process.kill(process.pid, signal);
}

/** Whether this process belongs to the group that a terminal's keyboard signals go to. */
function inTerminalForeground() {
  try {
    // proc(5): the fields after the name in brackets are state, ppid, pgrp, session, tty_nr, tpgid.
    const stat = readFileSync("/proc/self/stat", "latin1");
    const [, , group, , terminal, foregroundGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return terminal !== "0" && group === foregroundGroup;
  } catch {
    return process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  }
}
