/** EDNS options of the client that are sent back when the reply has no OPT of its own (docs/spec/coredns-behaviour.md#replies). */
import { type EdnsOption, EdnsOptionCode, findOption } from "../../dns/edns.ts";
import { readU16, writeU16 } from "../../dns/octets.ts";
import type { Asked } from "./asked.ts";

/**
 * The options that every listener echoes: only those that it implements. A server without cookies ignores those of
 * clients (RFC 7873 section 5.2.1: a server that echoes them seems to have a cookie of eight octets), `nsid` answers
 * the identifier, and padding is for encrypted transports (RFC 7830 section 6), whose replies are padded when they
 * are written.
 */
export const ECHOED_OPTIONS: ReadonlySet<number> = new Set([EdnsOptionCode.TCP_KEEPALIVE]);

const NONE: readonly EdnsOption[] = [];

export function echoedOptions(query: Asked): readonly EdnsOption[] {
  if (!query.hasEdns || readU16(query.bytes, query.optOffset + 8) === 0) return NONE;
  const options = (query.edns?.options ?? NONE).filter(({ code }) => query.echoedOptions.has(code));
  if (findOption(options, EdnsOptionCode.TCP_KEEPALIVE) === undefined) return options;
  return options.flatMap((option) =>
    option.code === EdnsOptionCode.TCP_KEEPALIVE ? keepalive(query) : option,
  );
}

/** The time that a client may be silent, in units of 100 ms. It must not be sent over UDP (RFC 7828 section 3.2.1). */
function keepalive({ transport, listener: { idleTimeout } }: Asked): readonly EdnsOption[] {
  if ((transport !== "tcp" && transport !== "tls") || idleTimeout === undefined) return NONE;
  const data = new Uint8Array(2);
  writeU16(data, 0, Math.min(0xffff, Math.floor(idleTimeout / 100)));
  return [{ code: EdnsOptionCode.TCP_KEEPALIVE, data }];
}

/** Octets that options take on the wire. */
export function optionsLength(options: readonly EdnsOption[]): number {
  let length = 0;
  for (const option of options) length += 4 + option.data.length;
  return length;
}
