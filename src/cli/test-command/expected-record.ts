import { NameError } from "../../dns/name.ts";
import { PresentationError } from "../../dns/rdata-scanner.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { formatRecord, parseRecord } from "../../dns/resource-record.ts";

/** Seconds, both ends included. */
export interface TtlRange {
  readonly least: number;
  readonly most: number;
}

/** A record as a test expects it: `NAME [TTL] [IN] TYPE DATA`, where TTL is a number, a range `1-30`, or left out. */
export class ExpectedRecord {
  /** The text as written. */
  readonly text: string;
  /** Equal for records that differ only in TTL and in the case of the owner. */
  readonly key: string;
  readonly ttl: TtlRange | undefined;

  private constructor(text: string, key: string, ttl: TtlRange | undefined) {
    this.text = text;
    this.key = key;
    this.ttl = ttl;
  }

  static parse(text: string): ExpectedRecord | { readonly problem: string } {
    const [, name = "", least, most = least, rest = ""] =
      /^(\S+)\s+(?:(\d+)(?:-(\d+))?\s+)?(.*)$/.exec(text) ?? [];
    const owner = name.endsWith(".") ? name : `${name}.`;
    const type = /^(?:IN|CH|HS)\s/i.test(rest) ? rest : `IN ${rest}`;
    try {
      const record = parseRecord(`${owner} 0 ${type}`);
      const ttl = least === undefined ? undefined : { least: Number(least), most: Number(most) };
      return new ExpectedRecord(text, recordKey(record), ttl);
    } catch (error) {
      if (error instanceof PresentationError || error instanceof NameError) return { problem: error.message };
      throw error;
    }
  }
}

/** Identifies a record regardless of its TTL. */
export function recordKey(record: ResourceRecord): string {
  const [owner = "", , ...rest] = formatRecord(record).split("\t");
  return [owner.toLowerCase(), ...rest].join(" ");
}
