/** Which core does what: the server under test has one for itself. */

const SERVER_CORE = 0;
/** Of the load generators and of the upstream. */
const LOAD_CORE = 1;

type Command = [command: string, ...args: string[]];

/** A command line that runs on the server's core; the process is that of the command itself. */
export function onServerCore(command: string, args: readonly string[]): Command {
  return pinned(SERVER_CORE, command, args);
}

export function onLoadCore(command: string, args: readonly string[]): Command {
  return pinned(LOAD_CORE, command, args);
}

/** A command line that moves a process, and what it starts from then on, to the core of the load. */
export function moveToLoadCore(pid: number): Command {
  return ["taskset", "-p", "-c", `${LOAD_CORE}`, `${pid}`];
}

function pinned(core: number, command: string, args: readonly string[]): Command {
  return ["taskset", "-c", `${core}`, command, ...args];
}
