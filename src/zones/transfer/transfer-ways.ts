/** Chooses how to query each primary of a zone: for the changes, or for the whole zone if it cannot send changes. */

import type { Logger } from "../../lib/logging/log.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { isAsNew } from "../../plugin/contract/transfer.ts";
import type { Zone } from "../data/zone.ts";
import type { Primary } from "./primary.ts";
import {
  serialOfPrimary,
  TransferError,
  type TransferInOptions,
  type TransferredZone,
  transferIn,
  wholeZone,
} from "./transfer-in.ts";

export class TransferWays {
  readonly #axfrOnly: boolean;
  readonly #log: Logger;
  /** Whether a primary has answered IXFR with a newer state. Unknown before the first try, and again after a failure. */
  readonly #knowsIxfr = new Map<Primary, boolean>();

  /** @param axfrOnly whether no primary is asked for changes */
  constructor(axfrOnly: boolean, log: Logger) {
    this.#axfrOnly = axfrOnly;
    this.#log = log;
  }

  /**
   * Some primaries answer IXFR with the serial in the query, close the connection, or never answer. So their serial is queried
   * until IXFR has worked once, and a primary that has a newer serial and fails at IXFR is asked for the whole zone from then on.
   * @throws as `transferIn`
   */
  async transfer(primary: Primary, options: TransferInOptions): Promise<TransferredZone> {
    const { current } = options;
    if (current === undefined) return await transferIn(options);
    const knowsIxfr = this.#axfrOnly ? false : this.#knowsIxfr.get(primary);
    if (knowsIxfr === true) {
      try {
        return await transferIn(options);
      } catch (error) {
        this.#knowsIxfr.delete(primary);
        throw error;
      }
    }
    const serial = await serialIfAny(options);
    if (serial !== undefined && isAsNew(current.serial, serial)) return { way: "same", serial };
    if (knowsIxfr === undefined) {
      // A primary that does not return its serial is queried like any other.
      if (serial === undefined) return await transferIn(options);
      const result = await this.#tryIxfr(primary, options, current);
      if (result !== undefined) return result;
    }
    return await wholeZone(options);
  }

  /** @returns `undefined` if the primary fails at IXFR */
  async #tryIxfr(
    primary: Primary,
    options: TransferInOptions,
    current: Zone,
  ): Promise<TransferredZone | undefined> {
    let reason: string;
    try {
      const result = await transferIn(options);
      if (result.way !== "same") {
        this.#knowsIxfr.set(primary, true);
        return result;
      }
      reason = `has a newer serial than ${current.serial}, but answers IXFR with ${result.serial}`;
    } catch (error) {
      options.signal?.throwIfAborted();
      reason = `fails at IXFR: ${messageOf(error)}`;
    }
    this.#knowsIxfr.set(primary, false);
    this.#log.warning(
      `"${primary.text}" ${reason}. It is asked for all of zone ${options.apex} (AXFR) from now on`,
    );
    return undefined;
  }
}

/** The serial of the primary; `undefined` for any other answer. */
async function serialIfAny(options: TransferInOptions): Promise<number | undefined> {
  try {
    return await serialOfPrimary(options);
  } catch (error) {
    if (error instanceof TransferError) return undefined;
    throw error;
  }
}
