import { type EdnsOption, EdnsOptionCode } from "../../dns/index.ts";
import { readU16 } from "../../dns/octets.ts";
import { afterNext, type Handler, type Outcome, type Query } from "../../plugin/index.ts";

/** Puts an identifier into the replies to queries that carry the NSID option. */
export class IdentifierHandler {
  readonly #option: EdnsOption;

  constructor(identifier: string) {
    this.#option = { code: EdnsOptionCode.NSID, data: Buffer.from(identifier) };
  }

  readonly handle: Handler = (query, next) =>
    asksForIdentifier(query) ? afterNext(next(query), query, this.#identify) : next(query);

  readonly #identify = (outcome: Outcome, query: Query): Outcome => {
    if (outcome.kind !== "reply") return outcome;
    const { edns } = outcome;
    const others = edns?.options.filter((option) => option.code !== EdnsOptionCode.NSID) ?? [];
    outcome.edns = {
      udpSize: edns?.udpSize ?? query.udpSize,
      version: 0,
      dnssecOk: edns?.dnssecOk ?? true,
      options: [...others, this.#option],
    };
    query.trace?.note("added the identifier of this server to the reply");
    return outcome;
  };
}

/** Reads the options in place: most queries have no NSID, and need no object to find out. */
function asksForIdentifier({ bytes, optOffset }: Query): boolean {
  if (optOffset < 0) return false;
  let at = optOffset + 10;
  const end = at + readU16(bytes, optOffset + 8);
  while (at + 4 <= end) {
    if (readU16(bytes, at) === EdnsOptionCode.NSID) return true;
    at += 4 + readU16(bytes, at + 2);
  }
  return false;
}
