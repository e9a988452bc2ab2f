/** Reads zone files in portions, and zone text in memory. */

import { fileFault } from "../../lib/files/file-fault.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { Name } from "../name.ts";
import { copyOctets } from "../octets.ts";
import type { ResourceRecord } from "../record-kind.ts";
import { dataFromWire } from "../resource-record.ts";
import { WireError } from "../wire-reader.ts";
import type { EntryScanner } from "./entry-scanner.ts";
import { type ZoneTextFault, ZoneTextFaults } from "./fault.ts";
import { Step, ZoneTextParser, type ZoneTextRecord, type ZoneTextSink } from "./parser.ts";

/** An open file. */
export interface ZoneTextFile {
  /** Reads the next octets into `target`; 0 at the end. */
  read(target: Uint8Array): Promise<number>;
  close(): Promise<void>;
}

/** Opens zone files. */
export interface ZoneTextFiles {
  /** @param includedFrom the file with the `$INCLUDE` line, for paths relative to its folder */
  open(
    file: string,
    includedFrom: string | undefined,
  ): Promise<{ readonly file: string; readonly text: ZoneTextFile }>;
}

/** Bounds and defaults for the reader of zone files. */
export interface ReadZoneTextOptions {
  readonly file: string;
  readonly files: ZoneTextFiles;
  readonly origin: Name;
  readonly sink: ZoneTextSink;
  /** Called and awaited between portions. A rejection ends the reading. */
  readonly pause?: () => Promise<void>;
}

/** Entries of a portion, small enough not to block the event loop. */
const PORTION = 100;
const CHUNK_OCTETS = 256 * 1024;
/** RDATA has 65,535 octets, each written with at most four characters. */
const MAX_ENTRY_OCTETS = 1024 * 1024;

/**
 * Reads a zone file and all included files. Faults are collected, and reading continues after each.
 * @throws the error of `files.open` for the first file
 */
export async function readZoneText(options: ReadZoneTextOptions): Promise<ZoneTextFaults> {
  const faults = new ZoneTextFaults();
  const parser = new ZoneTextParser(options.sink, faults);
  const open: OpenText[] = [];
  try {
    const first = await options.files.open(options.file, undefined);
    open.push({ ...first, depth: 1, isBegun: false });
    feed(parser.open(first.file, options.origin.wire));
    for (;;) {
      const result = parser.step(PORTION);
      for (let top = open.at(-1); top !== undefined && top.depth > parser.depth; top = open.at(-1)) {
        open.pop();
        await top.text.close();
      }
      if (result === Step.DONE) return faults;
      if (result === Step.PORTION) await options.pause?.();
      else if (result === Step.INCLUDE) await include(parser, options.files, open);
      else await readMore(parser, open, faults);
    }
  } finally {
    for (const { text } of open) await text.close();
  }
}

interface OpenText {
  readonly file: string;
  readonly text: ZoneTextFile;
  /** The parser's depth with this file on top. */
  readonly depth: number;
  /** Whether anything was read. */
  isBegun: boolean;
}

/** Windows editors begin files with it (U+FEFF in UTF-8); it is not part of the zone. */
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;

function feed(scanner: EntryScanner): void {
  scanner.bytes = new Uint8Array(CHUNK_OCTETS);
  scanner.final = false;
}

async function include(parser: ZoneTextParser, files: ZoneTextFiles, open: OpenText[]): Promise<void> {
  const request = parser.include;
  if (request === undefined) return;
  parser.include = undefined;
  try {
    const opened = await files.open(request.file, parser.file);
    feed(parser.open(opened.file, request.origin));
    open.push({ ...opened, depth: parser.depth, isBegun: false });
  } catch (error) {
    parser.fault(1, `failed to open ${request.file}: ${fileFault(error)}`);
  }
}

async function readMore(
  parser: ZoneTextParser,
  open: readonly OpenText[],
  faults: ZoneTextFaults,
): Promise<void> {
  const { scanner } = parser;
  const top = open.at(-1);
  const kept = scanner.limit - scanner.at;
  if (kept >= MAX_ENTRY_OCTETS) {
    const reason = "entry longer than 1 MiB: is a parenthesis never closed?";
    faults.add({ file: parser.file, line: scanner.line, column: 1, reason, severity: "error" });
    scanner.limit = scanner.at;
    scanner.final = true;
    return;
  }
  if (kept * 2 > scanner.bytes.length) {
    const larger = new Uint8Array(scanner.bytes.length * 2);
    larger.set(scanner.bytes.subarray(scanner.at, scanner.limit));
    scanner.bytes = larger;
  } else scanner.bytes.copyWithin(0, scanner.at, scanner.limit);
  scanner.lineStart -= scanner.at;
  scanner.at = 0;
  scanner.limit = kept;
  try {
    const length = (await top?.text.read(scanner.bytes.subarray(kept))) ?? 0;
    scanner.limit = kept + length;
    if (length === 0) scanner.final = true;
    if (
      top?.isBegun === false &&
      BYTE_ORDER_MARK.every((octet, index) => scanner.bytes[kept + index] === octet)
    ) {
      scanner.bytes.copyWithin(kept, kept + BYTE_ORDER_MARK.length, scanner.limit);
      scanner.limit -= BYTE_ORDER_MARK.length;
    }
    if (top !== undefined) top.isBegun = true;
  } catch (error) {
    const reason = `failed to read: ${messageOf(error)}`;
    faults.add({ file: parser.file, line: scanner.line, column: 1, reason, severity: "error" });
    scanner.final = true;
  }
}

/** The records of a zone text and the faults in it. */
export interface ParsedZoneText {
  readonly records: readonly ResourceRecord[];
  /** The first hundred. */
  readonly faults: readonly ZoneTextFault[];
}

/**
 * Reads zone text in memory, without `$INCLUDE`.
 * @param options.file the name in faults; default `zone`
 */
export function parseZoneText(
  text: string | Uint8Array,
  options: { readonly origin?: Name; readonly file?: string } = {},
): ParsedZoneText {
  const records: ResourceRecord[] = [];
  const faults = new ZoneTextFaults();
  const parser = new ZoneTextParser(
    {
      record(record) {
        try {
          records.push(toResourceRecord(record));
          return undefined;
        } catch (error) {
          if (error instanceof WireError) return error.message;
          throw error;
        }
      },
    },
    faults,
  );
  const scanner = parser.open(options.file ?? "zone", (options.origin ?? Name.root).wire);
  scanner.bytes = typeof text === "string" ? Buffer.from(text) : text;
  scanner.limit = scanner.bytes.length;
  for (;;) {
    const result = parser.step(PORTION);
    if (result === Step.DONE) return { records, faults: faults.list };
    if (result === Step.INCLUDE) {
      parser.fault(0, "$INCLUDE is not available here");
      parser.include = undefined;
    }
  }
}

/**
 * A record as a value.
 * @throws WireError
 */
export function toResourceRecord(record: ZoneTextRecord): ResourceRecord {
  const { owner, ownerLength, type, rdata, rdataLength, ttl } = record;
  const name = Name.fromCheckedWire(copyOctets(owner, 0, ownerLength));
  return {
    name,
    type,
    class: record.class,
    ttl,
    data: dataFromWire(type, copyOctets(rdata, 0, rdataLength)),
  };
}
