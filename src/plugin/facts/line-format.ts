/** The format of log lines, compiled once into the writers of its parts. */
import { className, Flag, Opcode, rcodeName } from "../../dns/numbers.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import type { Endpoint } from "../message/endpoint.ts";
import type { Query } from "../query/query.ts";
import type { Reply } from "../query/reply.ts";

export const COMMON_FORMAT =
  '{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}';
export const COMBINED_FORMAT = `${COMMON_FORMAT} "{>opcode}"`;

/** A text with placeholders in braces. Unknown placeholders are printed as they are. */
export class LineFormat {
  readonly #parts: readonly Part[];

  constructor(format: string) {
    this.#parts = format
      .split(/(\{[^{}]*\})/)
      .filter((part) => part !== "")
      .map(compilePart);
  }

  /**
   * @param reply undefined if nothing is sent.
   * @param elapsed milliseconds since the arrival of the query.
   * @param size octets that were sent; those of the reply unless given.
   */
  line(query: Query, reply: Reply | undefined, elapsed: number, size?: number): string {
    let line = "";
    for (const part of this.#parts)
      line += typeof part === "string" ? part : part(query, reply, elapsed, size);
    return line;
  }
}

type Writer = (query: Query, reply: Reply | undefined, elapsed: number, size: number | undefined) => string;
type Part = string | Writer;

const ABSENT = "-";

const PLACEHOLDERS: ReadonlyMap<string, Writer> = new Map<string, Writer>([
  ["{type}", (query) => recordTypeName(query.type)],
  ["{class}", (query) => className(query.class)],
  ["{name}", (query) => query.name.toLowerCase().toString()],
  ["{remote}", (query) => addressText(query.client)],
  ["{local}", (query) => addressText(query.local)],
  ["{port}", (query) => String(query.client.port)],
  ["{proto}", (query) => (query.overStream ? "tcp" : "udp")],
  ["{size}", (query) => String(query.length)],
  ["{>id}", (query) => String(query.id)],
  ["{>opcode}", (query) => String(query.opcode)],
  ["{>do}", (query) => String(query.dnssecOk)],
  ["{>bufsize}", (query) => (query.overStream ? "65535" : String(query.udpSize))],
  ["{rcode}", (_query, reply) => (reply === undefined ? ABSENT : rcodeName(reply.rcode))],
  ["{>rflags}", (query, reply) => (reply === undefined ? ABSENT : flagsText(flagsToSend(query, reply)))],
  ["{rsize}", (_query, reply, _elapsed, size) => String(size ?? reply?.size ?? 0)],
  ["{duration}", (_query, _reply, elapsed) => secondsText(elapsed)],
]);

/** Looks like a placeholder, and is unknown. */
export interface UnknownPlaceholder {
  readonly text: string;
  /** In the format. */
  readonly start: number;
  readonly end: number;
  /** The placeholder that was probably meant. */
  readonly meant: string | undefined;
}

/** @param more placeholders that another component fills in */
export function unknownPlaceholders(format: string, more: readonly string[] = []): UnknownPlaceholder[] {
  const known = [...PLACEHOLDERS.keys(), ...more];
  const bare = (placeholder: string): string => placeholder.replace(/^\{[>/]?/, "").slice(0, -1);
  const unknown: UnknownPlaceholder[] = [];
  for (const { 0: text, index } of format.matchAll(/\{[>/]?[\w./-]+\}/g)) {
    if (known.includes(text) || typeof compilePart(text) === "function") continue;
    const nearest = nearestWord(bare(text), known.map(bare));
    const meant = known.find((placeholder) => bare(placeholder) === nearest);
    unknown.push({ text, start: index, end: index + text.length, meant });
  }
  return unknown;
}

/** The text of a warning about an unknown placeholder. */
export function placeholderProblem({ text }: UnknownPlaceholder): string {
  return `'${text}' is not a placeholder: it is printed as is`;
}

function compilePart(part: string): Part {
  const label = /^\{\/([^/]+\/.+)\}$/s.exec(part)?.[1];
  if (label !== undefined) return (query) => query.metadataValue(label) ?? ABSENT;
  return PLACEHOLDERS.get(part) ?? part;
}

function addressText({ family, address }: Endpoint): string {
  return family === 6 ? `[${address}]` : address;
}

/** RD and CD are copied from a standard query as the client sent it, QR is always set (docs/spec/coredns-behaviour.md#replies). */
export function flagsToSend({ root }: Query, reply: Reply): number {
  const copied = root.opcode === Opcode.QUERY ? root.flags & (Flag.RD | Flag.CD) : 0;
  return Flag.QR | copied | (reply.flags & (Flag.AA | Flag.TC | Flag.RA | Flag.AD));
}

function flagsText(flags: number): string {
  return flagNames(flags).join() || ABSENT;
}

/** In the words and the order of `dig`. */
export function flagNames(flags: number): string[] {
  return FLAG_NAMES.flatMap(([bit, name]) => ((flags & bit) === 0 ? [] : [name]));
}

const FLAG_NAMES: readonly (readonly [number, string])[] = [
  [Flag.QR, "qr"],
  [Flag.AA, "aa"],
  [Flag.TC, "tc"],
  [Flag.RD, "rd"],
  [Flag.RA, "ra"],
  [Flag.Z, "z"],
  [Flag.AD, "ad"],
  [Flag.CD, "cd"],
];

/** Seconds to the nanosecond, without trailing zeros and without exponent: `0.000123s`, `2s`. */
function secondsText(milliseconds: number): string {
  const nanoseconds = Math.max(0, Math.round(milliseconds * 1e6));
  const fraction = nanoseconds % 1e9;
  const whole = String((nanoseconds - fraction) / 1e9);
  return fraction === 0 ? `${whole}s` : `${whole}.${trimZeros(String(fraction).padStart(9, "0"))}s`;
}

function trimZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  return digits.slice(0, end);
}
