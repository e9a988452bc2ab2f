/**
 * The last step of every answer: the client's header and question, the records and OPT, within the client's size
 * limit (docs/spec/coredns-behaviour.md#replies). The client's own question is repeated, whatever plugins changed on
 * the way.
 */

import { RUN_NUMBERS, RunField } from "../../dns/address-runs.ts";
import { compressed, isCompressible } from "../../dns/compression.ts";
import { CO_BIT, type EdnsOption, EdnsOptionCode, OPT_FIXED_OCTETS } from "../../dns/edns.ts";
import type { EncodedSections } from "../../dns/encoded-sections.ts";
import { Flag, Opcode, Rcode } from "../../dns/numbers.ts";
import { octetAt, readU16, writeU16, writeU32 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { WireError } from "../../dns/wire-reader.ts";
import { echoedOptions, optionsLength } from "../../plugin/message/echoed-options.ts";
import type { MessageSeal } from "../../plugin/message/message-seal.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import { MAX_DATAGRAM_OCTETS } from "../../transports/transport.ts";
import { isPadded, PADDING_BLOCK, writePadding } from "./reply-padding.ts";

const MAX_STREAM_OCTETS = 0xffff;
const COPIED_FROM_REPLY = Flag.AA | Flag.TC | Flag.RA | Flag.AD;

/** Provides the buffer that a reply is written into. */
export interface ReplyBuffers {
  /** At least `size` octets. */
  buffer(size: number): Uint8Array;
}

/**
 * Writes the reply to a client's query from the first octet of a buffer on and returns its length. `query` is the client's, not a
 * derived one.
 */
export function writeReply(query: Query, reply: Reply, buffers: ReplyBuffers): number {
  reply.answerFor(query);
  const { bytes, seals } = query;
  const room = seals === undefined ? 0 : roomOf(seals);
  const limit = sizeLimit(query) - room;
  const pads = isPadded(query);
  const options = optionsFor(query, reply, limit, pads);
  const opt = optLength(query, options);
  const whole = reply.sections;
  const sections = whole.end + opt <= limit ? whole : shortened(whole, query, limit - opt);
  const out = buffers.buffer(Math.min(limit, sections.end + opt + (pads ? PADDING_BLOCK + 4 : 0)) + room);
  const shown = sections.end + opt <= limit ? sections.count : recordsThatFit(sections, limit - opt);
  const end = shown === sections.count ? sections.end : (sections.recordStarts[shown] ?? sections.start);
  const answers = Math.min(shown, sections.answerCount);
  const authorities = Math.min(shown - answers, sections.authorityCount);

  const fromQuery = query.opcode === Opcode.QUERY ? query.flags & (Flag.RD | Flag.CD) : 0;
  const truncated = shown < whole.count ? Flag.TC : 0;
  const flags =
    Flag.QR |
    (query.opcode << 11) |
    fromQuery |
    truncated |
    (reply.flags & COPIED_FROM_REPLY) |
    headerRcode(query, reply);
  writeU16(out, 0, query.id);
  writeU16(out, 2, flags);
  writeU16(out, 4, 1);
  writeU16(out, 6, answers);
  writeU16(out, 8, authorities);
  writeU16(out, 10, shown - answers - authorities + (opt > 0 ? 1 : 0));
  const { questionEnd } = query;
  for (let at = 12; at < questionEnd; at++) out[at] = octetAt(bytes, at);
  copySections(sections, questionEnd, end, out);
  if (reply.uniformTtl >= 0 && shown > 0) {
    writeU32(out, sections.firstTypeOffset + 4, reply.uniformTtl);
    for (let index = 1; index < shown; index++)
      writeU32(out, (sections.typeOffsets[index] ?? 0) + 4, reply.uniformTtl);
  }
  if (reply.shuffle !== 0) shuffleAddresses(sections, end, out, reply.shuffle);
  let length = opt > 0 ? writeOpt(query, reply, options, out, end) : end;
  if (pads) length = writePadding(out, end, length, limit);
  return seals === undefined ? length : seal(seals, out, length);
}

/** Octets that seals may add. */
function roomOf(seals: readonly MessageSeal[]): number {
  let room = 0;
  for (const { room: own } of seals) room += own;
  return room;
}

/** The last seal first: the plugin nearest to the client sees the message as it is sent. */
function seal(seals: readonly MessageSeal[], out: Uint8Array, written: number): number {
  let length = written;
  for (let index = seals.length - 1; index >= 0; index--) length = seals[index]?.seal(out, length) ?? length;
  return length;
}

function sizeLimit(query: Query): number {
  if (query.takesLongReplies) return MAX_STREAM_OCTETS;
  return Math.max(512, Math.min(query.udpSize, query.replyLimit, MAX_DATAGRAM_OCTETS));
}

/** A reply that is too long may fit once its names are compressed: not every upstream compresses them. */
function shortened(whole: EncodedSections, query: Query, limit: number): EncodedSections {
  const { bytes, question, questionEnd } = query;
  const fitting = recordsThatFit(whole, limit);
  // If compression gains nothing up to the first record that is left out, that record does not fit compressed either.
  if (!isCompressible(whole, bytes, Math.min(fitting + 1, whole.count))) return whole;
  try {
    const shorter = compressed(whole, question, bytes.subarray(12, questionEnd), limit);
    return recordsThatFit(shorter, limit) > fitting ? shorter : whole;
  } catch (error) {
    if (error instanceof WireError) return whole;
    throw error;
  }
}

/** Keeps records in order while they fit, and drops the first that does not with all that follow. */
function recordsThatFit(sections: EncodedSections, limit: number): number {
  let shown = sections.count;
  while (shown > 0 && (sections.recordStarts[shown] ?? 0) > limit) shown--;
  return shown;
}

/** Below this size a loop copies faster than a call into the engine. */
const SHORT_COPY = 128;

function copySections(sections: EncodedSections, start: number, end: number, out: Uint8Array): void {
  const { bytes } = sections;
  if (end - start > SHORT_COPY) out.set(bytes.subarray(start, end), start);
  else for (let at = start; at < end; at++) out[at] = octetAt(bytes, at);
}

/** Shuffles the addresses of each RRset. */
function shuffleAddresses(sections: EncodedSections, end: number, out: Uint8Array, seed: number): void {
  let state = seed | 0;
  const { runTable: runs, runCount } = sections;
  for (let run = 0; run < runCount * RUN_NUMBERS; run += RUN_NUMBERS) {
    const first = runs[run + RunField.FIRST] ?? 0;
    const stride = runs[run + RunField.STRIDE] ?? 0;
    const size = runs[run + RunField.SIZE] ?? 0;
    // Only the part of a run that survives truncation may be shuffled.
    const count = Math.min(runs[run + RunField.COUNT] ?? 0, Math.floor((end - first - size) / stride) + 1);
    state = shuffleRun(out, first, stride, size, count, state);
  }
}

/**
 * Shuffles pieces of octets; all orders are equally likely.
 * @param seed not 0
 * @returns the seed for the next run
 */
export function shuffleRun(
  out: Uint8Array,
  first: number,
  stride: number,
  size: number,
  count: number,
  seed: number,
): number {
  let state = seed;
  for (let last = count - 1; last > 0; last--) {
    // xorshift32 (Marsaglia): good enough to spread load, and it needs no object.
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const other = (state >>> 0) % (last + 1);
    if (other !== last) swapOctets(out, first + other * stride, first + last * stride, size);
  }
  return state;
}

function swapOctets(bytes: Uint8Array, left: number, right: number, size: number): void {
  for (let at = 0; at < size; at++) {
    const kept = octetAt(bytes, left + at);
    bytes[left + at] = octetAt(bytes, right + at);
    bytes[right + at] = kept;
  }
}

/**
 * The plugin's options, else the echoed options of the client. No options if they alone exceed the client's limit: a
 * query with a kilobyte of padding and room for 512 octets gets none back.
 */
function optionsFor(query: Query, reply: Reply, limit: number, pads: boolean): readonly EdnsOption[] {
  const all = reply.edns?.options ?? echoedOptions(query);
  const options = pads ? all.filter(({ code }) => code !== EdnsOptionCode.PADDING) : all;
  if (options.length === 0) return options;
  const least = query.questionEnd + OPT_FIXED_OCTETS + optionsLength(options);
  return least > limit ? NO_OPTIONS : options;
}

const NO_OPTIONS: readonly EdnsOption[] = [];

/** A client that sent no OPT gets none, whatever a plugin put there (RFC 6891 section 7). */
function optLength(query: Query, options: readonly EdnsOption[]): number {
  return query.hasEdns ? OPT_FIXED_OCTETS + optionsLength(options) : 0;
}

/** The rcode of the header. A code above 15 needs OPT: without it, its lower bits would be another code. */
function headerRcode(query: Query, { rcode }: Reply): number {
  return rcode > 0xf && !query.hasEdns ? Rcode.SERVFAIL : rcode & 0xf;
}

function writeOpt(
  query: Query,
  reply: Reply,
  options: readonly EdnsOption[],
  out: Uint8Array,
  start: number,
): number {
  const own = reply.edns;
  // As in CoreDNS, the client sees the size that `bufsize` set.
  const udpSize = Math.min(readU16(query.bytes, query.optOffset + 2), query.replyLimit);
  out[start] = 0;
  writeU16(out, start + 1, RecordType.OPT);
  writeU16(out, start + 3, udpSize);
  out[start + 5] = reply.rcode >>> 4;
  out[start + 6] = 0;
  const compactOk = query.compactOk && (query.listener.deniesCompactly === true || own?.compactOk === true);
  writeU16(out, start + 7, (query.dnssecOk ? 0x8000 : 0) | (compactOk ? CO_BIT : 0));
  let at = start + OPT_FIXED_OCTETS;
  for (const option of options) {
    writeU16(out, at, option.code);
    writeU16(out, at + 2, option.data.length);
    out.set(option.data, at + 4);
    at += 4 + option.data.length;
  }
  writeU16(out, start + 9, at - start - OPT_FIXED_OCTETS);
  return at;
}
