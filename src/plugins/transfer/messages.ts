/** The messages of a zone transfer (RFC 5936 section 2.2), each made when the previous one is on its way. */
import { EncodedSections } from "../../dns/encoded-sections.ts";
import {
  Flag,
  Rcode,
  type ResourceRecord,
  recordTypeName,
  WireError,
  WireReader,
  WireWriter,
} from "../../dns/index.ts";
import { writeRecord } from "../../dns/resource-record.ts";
import { type Query, Reply } from "../../plugin/index.ts";

/** Octets of a message: within the reach of compression pointers, and small enough for one turn of the event loop. */
const FULL = 16_000;
/** Octets. A message with more than one record leaves room for a signature. */
const LARGEST = 65_535 - 512;

/** A record that fits into no message. */
export class RecordTooLongError extends Error {
  override readonly name = "RecordTooLongError";

  constructor({ name, type }: ResourceRecord) {
    super(
      `the zone cannot be transferred: the ${recordTypeName(type)} record of ${name} fits into no message`,
    );
  }
}

/** @param done called with the number of records after the last message @throws RecordTooLongError */
export function* transferMessages(
  query: Query,
  records: Iterable<ResourceRecord>,
  done: (count: number) => void,
): Generator<Reply> {
  let filler = new MessageFiller(query);
  let count = 0;
  for (const record of records) {
    count++;
    if (!filler.add(record)) {
      yield filler.finish();
      filler = new MessageFiller(query);
      filler.add(record);
    }
    if (filler.isFull) {
      yield filler.finish();
      filler = new MessageFiller(query);
    }
  }
  if (!filler.isEmpty) yield filler.finish();
  done(count);
}

class MessageFiller {
  readonly #query: Query;
  readonly #writer = new WireWriter({ capacity: FULL + 1_024 });
  readonly #start: number;
  readonly #starts: number[] = [];

  constructor(query: Query) {
    this.#query = query;
    const { name, type, class: recordClass } = query.question;
    this.#writer.reserve(12);
    this.#writer.offset = 12;
    this.#writer.name(name);
    this.#writer.u16(type);
    this.#writer.u16(recordClass);
    this.#start = this.#writer.offset;
  }

  get isEmpty(): boolean {
    return this.#starts.length === 0;
  }

  get isFull(): boolean {
    return this.#writer.offset >= FULL;
  }

  /** @returns false if the record needs a message of its own @throws RecordTooLongError */
  add(record: ResourceRecord): boolean {
    const start = this.#writer.offset;
    const isFirst = this.isEmpty;
    const fits = this.#write(record) && (isFirst || this.#writer.offset <= LARGEST);
    if (fits) this.#starts.push(start);
    else if (isFirst) throw new RecordTooLongError(record);
    else this.#writer.offset = start;
    return fits;
  }

  #write(record: ResourceRecord): boolean {
    try {
      writeRecord(this.#writer, record);
      return true;
    } catch (error) {
      if (error instanceof WireError && error.code === "TOO_LARGE") return false;
      throw error;
    }
  }

  finish(): Reply {
    const bytes = this.#writer.finish().slice();
    const reader = new WireReader(bytes, this.#start);
    const typeOffsets = Uint16Array.from(this.#starts, (at) => {
      reader.offset = at;
      reader.skipName();
      return reader.offset;
    });
    const recordStarts = Uint16Array.from([...this.#starts, bytes.length]);
    const counts = [this.#starts.length, 0, 0] as const;
    const encoded = EncodedSections.assembled(bytes, this.#start, counts, recordStarts, typeOffsets);
    return Reply.fromEncoded(this.#query, encoded, Rcode.NOERROR, Flag.AA);
  }
}
