/** Sockets made by our own system calls, in this thread's event loop. */
import { EventLoop } from "./event-loop.ts";
import { type Libc, libcOf, loadForeignFunctions, NoForeignFunctions } from "./libc.ts";

export interface LinuxSockets {
  readonly libc: Libc;
  readonly loop: EventLoop;
}

/** The result of {@link linuxSockets}. A thread has one event loop, and therefore one of these. */
let ofThisThread: Promise<LinuxSockets | NoForeignFunctions> | undefined;

/** @returns the reason if they are not available: another system, no koffi, or a Node that lacks a symbol */
export function linuxSockets(): Promise<LinuxSockets | NoForeignFunctions> {
  ofThisThread ??= open();
  return ofThisThread;
}

async function open(): Promise<LinuxSockets | NoForeignFunctions> {
  try {
    const foreign = await loadForeignFunctions();
    const libc = libcOf(foreign);
    return { libc, loop: EventLoop.open(foreign, libc, () => performance.now()) };
  } catch (error) {
    if (error instanceof NoForeignFunctions) return error;
    return new NoForeignFunctions("a function of the C library is missing", { cause: error });
  }
}
