import { Name, RecordClass, RecordType, TXT } from "../../dns/index.ts";
import type { Handler, Query, Random } from "../../plugin/index.ts";

export interface FactTexts {
  readonly version: string;
  readonly hostname: string;
  /** Without duplicates. */
  readonly authors: readonly string[];
}

const AUTHORS = Name.parse("authors.bind.");

/** Answers TXT queries of class CH (RFC 4892) with texts, each truncated to 255 octets, the limit of a TXT string. */
export class ChaosFacts {
  readonly #facts: readonly (readonly [Name, Uint8Array])[];
  readonly #authors: readonly Uint8Array[];
  readonly #random: Random;

  constructor({ version, hostname, authors }: FactTexts, random: Random) {
    this.#facts = [
      [Name.parse("version.bind."), characterString(version)],
      [Name.parse("version.server."), characterString(version)],
      [Name.parse("hostname.bind."), characterString(hostname)],
      [Name.parse("id.server."), characterString(hostname)],
    ];
    this.#authors = [...new Set(authors)].map(characterString);
    this.#random = random;
  }

  readonly handle: Handler = (query, next) => {
    const texts = this.#textsFor(query);
    if (texts === undefined) return next(query);
    query.trace?.note("a query of class CH about the server itself");
    return query.reply({
      answer: texts.map((text) => TXT.create(query.name, 0, { strings: [text] }, RecordClass.CH)),
    });
  };

  #textsFor(query: Query): readonly Uint8Array[] | undefined {
    if (query.class !== RecordClass.CH || query.type !== RecordType.TXT) return undefined;
    for (const [name, text] of this.#facts) if (query.name.equals(name)) return [text];
    return query.name.equals(AUTHORS) ? shuffled(this.#authors, this.#random) : undefined;
  }
}

function characterString(text: string): Uint8Array {
  return Buffer.from(text).subarray(0, 255);
}

/** A shuffled copy (Fisher-Yates). */
function shuffled<T>(items: readonly T[], random: Random): T[] {
  const rest = [...items];
  const result: T[] = [];
  while (rest.length > 0) result.push(...rest.splice(Math.floor(random.fraction() * rest.length), 1));
  return result;
}
