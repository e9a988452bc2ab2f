/** The events of a server over its restarts and reloads, which end every stream. */
import type { IncomingMessage } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { CLOSED, type ConsoleClient, type ConsoleEvent, ConsoleFault } from "./console-client.ts";

export interface Steadiness {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Milliseconds for which a server that went away is waited for. */
  readonly patience: number;
  /** Tells people that it went away, and that it is back. */
  readonly note?: (text: string) => void;
}

/** Milliseconds between two attempts. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 1_000;

/**
 * Events until the signal ends it; `again` where the stream began anew, and something may be missing.
 * @throws ConsoleFault for a server that cannot be reached at first, refuses, or has gone for longer than the patience
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

/** @returns `undefined` where the signal says so */
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
