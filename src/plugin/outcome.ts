/**
 * What became of a query. A plugin answers (`Reply`), says that it failed (`Failure`: no reply exists yet, the server
 * or a plugin nearer to the client makes one), or drops the query without a word (`DROPPED`).
 */
import type { Reply } from "./reply.ts";

export type Outcome = Reply | Failure | Dropped;

export class Failure {
  readonly kind = "failed";
  readonly rcode: number;
  /** Why, for the log. */
  readonly error: Error | undefined;
  /** Name of the plugin that failed; the chain fills it in. */
  plugin: string | undefined = undefined;

  constructor(rcode: number, error?: Error) {
    this.rcode = rcode;
    this.error = error;
  }
}

export interface Dropped {
  readonly kind: "dropped";
}

/** Nothing is sent. */
export const DROPPED: Dropped = Object.freeze({ kind: "dropped" });
