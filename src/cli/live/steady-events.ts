/** The events of a server across its restarts and reloads, each of which ends the stream. */
import type { IncomingMessage } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { CLOSED, type ConsoleClient, type ConsoleEvent, ConsoleFault } from "./console-client.ts";

export interface Steadiness {
  /** Ends the iteration. */
  readonly signal: AbortSignal;
  /** Milliseconds to wait for a server that went away. */
  readonly patience: number;
  /** Reports to the user that the server went away, and that it is back. */
  readonly note?: (text: string) => void;
}

/** Milliseconds between two attempts. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 1_000;

/**
 * Yields events until the signal aborts; yields `again` when the stream restarted and events may be missing.
 * @throws ConsoleFault if the server cannot be reached at first, refuses, or stays away for longer than the patience
 */
export async function* steadyEvents(
  client: ConsoleClient,
  path: string,
  { signal, patience, note = () => undefined }: Steadiness,
): AsyncGenerator<ConsoleEvent | "again"> {
  let response = await client.open(path);
  for (;;) {
    try {
      yield* client.eventsOf(response, signal);
    } catch (error) {
      if (!(error instanceof ConsoleFault) || !error.mayPass) throw error;
      if (error.reason !== CLOSED) note(error.message);
    }
    if (signal.aborted) return;
    const again = await reopen(client, path, { signal, patience, note });
    if (again === undefined) return;
    response = again;
    yield "again";
  }
}

/** @returns `undefined` when the signal aborts */
async function reopen(
  client: ConsoleClient,
  path: string,
  { signal, patience, note = () => undefined }: Steadiness,
): Promise<IncomingMessage | undefined> {
  const end = performance.now() + patience;
  let pause = FIRST_PAUSE;
  let isTold = false;
  for (;;) {
    try {
      const response = await client.open(path);
      if (isTold) note(`${client.address} is back`);
      return response;
    } catch (error) {
      if (!(error instanceof ConsoleFault) || !error.mayPass) throw error;
      if (signal.aborted) return undefined;
      const left = end - performance.now();
      if (left <= 0)
        throw new ConsoleFault(`${client.address} has gone away: ${error.reason}`, error.reason, true);
      if (!isTold) note(`${client.address} has gone away: tried again for ${Math.ceil(left / 1000)} s`);
      isTold = true;
      await wait(Math.min(pause, left), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return undefined;
      pause = Math.min(2 * pause, LONGEST_PAUSE);
    }
  }
}
