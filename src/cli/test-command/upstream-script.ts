/** The answers of a fake upstream. */
import type { Message } from "../../dns/message.ts";
import { type Name, NameError } from "../../dns/name.ts";
import { Flag, Rcode } from "../../dns/numbers.ts";
import { PresentationError } from "../../dns/rdata-scanner.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { CNAME } from "../../dns/record-table.ts";
import { parseRecord } from "../../dns/resource-record.ts";
import { RecordType } from "../../dns/type-names.ts";

export interface ScriptedUpstream {
  readonly script: UpstreamScript;
  /** Receives queries and never answers. */
  readonly isDown: boolean;
}

/** Longer alias chains end here. */
const MAX_ALIASES = 10;

export class UpstreamScript {
  readonly #records: ResourceRecord[] = [];
  readonly #otherwise: number;

  /** @param otherwise rcode for names without records */
  constructor(otherwise: number) {
    this.#otherwise = otherwise;
  }

  /** Adds a record in zone text. @returns the error, if the line is not a record */
  add(line: string): string | undefined {
    try {
      this.#records.push(parseRecord(line, { ttl: DEFAULT_TTL }));
      return undefined;
    } catch (error) {
      if (error instanceof PresentationError || error instanceof NameError) return error.message;
      throw error;
    }
  }

  /** The answer to a query, as a resolver would give it. */
  answer(query: Message): Message {
    const [question] = query.questions;
    const answer: ResourceRecord[] = [];
    let rcode: number = Rcode.NOERROR;
    let authority: ResourceRecord[] = [];
    let name = question?.name;
    for (let aliases = 0; name !== undefined && question !== undefined; aliases++) {
      const found = this.#at(name, question.type);
      if (found.length === 0) {
        rcode = this.#exists(name) ? Rcode.NOERROR : this.#otherwise;
        authority = this.#authority(name);
      }
      answer.push(...found);
      const alias: ResourceRecord | undefined = found.find(({ type }) => type === RecordType.CNAME);
      const follow: boolean =
        alias !== undefined && question.type !== RecordType.CNAME && aliases < MAX_ALIASES;
      name = follow && alias !== undefined && CNAME.is(alias) ? alias.data.target : undefined;
    }
    const flags = Flag.QR | Flag.RA | (query.flags & Flag.RD);
    return { ...query, flags, rcode, answer, authority, additional: [] };
  }

  #at(name: Name, type: number): ResourceRecord[] {
    const here = this.#records.filter((record) => record.name.equals(name));
    const wanted = here.filter((record) => record.type === type || type === RecordType.ANY);
    return wanted.length > 0 ? wanted : here.filter((record) => record.type === RecordType.CNAME);
  }

  #exists(name: Name): boolean {
    return this.#records.some((record) => record.name.isAtOrBelow(name));
  }

  #authority(name: Name): ResourceRecord[] {
    return this.#records.filter(
      ({ type, name: owner }) => type === RecordType.SOA && name.isAtOrBelow(owner),
    );
  }
}

/** Seconds, for records without a TTL. */
const DEFAULT_TTL = 300;
