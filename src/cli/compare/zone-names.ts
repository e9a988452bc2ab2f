/** The names of a zone, by transfer: questions for every RRset, in bounded memory. */
import { decodeMessage, encodeMessage, makeQuery } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { Rcode, rcodeName } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { UpstreamAddress } from "../../upstream/config/address.ts";
import { messagesFor } from "../../upstream/tcp/message-stream.ts";
import { FlagError } from "../flag-table.ts";
import type { Questions } from "./questions.ts";

export interface ZoneNamesOptions {
  readonly remote: UpstreamAddress;
  readonly clock: Clock;
  /** Of the query. */
  readonly id: number;
  /** Milliseconds for each message. */
  readonly timeout: number;
}

/** @throws FlagError if the server does not transfer the zone */
export async function addZoneNames(zone: string, options: ZoneNamesOptions, into: Questions): Promise<void> {
  const apex = Name.tryParse(zone.endsWith(".") ? zone : `${zone}.`);
  if (apex === undefined) throw new FlagError(`-zone ${zone}: not a domain name`, 2, false);
  const { remote, clock, id, timeout } = options;
  const query = encodeMessage(makeQuery({ name: apex, type: RecordType.AXFR }, { id, flags: 0 }));
  let soaRecords = 0;
  try {
    const messages = messagesFor(query, { remote, clock, connectTimeout: timeout, messageTimeout: timeout });
    for await (const octets of messages) {
      const { rcode, answer } = decodeMessage(octets);
      if (rcode !== Rcode.NOERROR || answer.length === 0)
        throw new Error(rcode === Rcode.NOERROR ? "the reply has no records" : rcodeName(rcode));
      for (const { name, type } of answer) {
        if (type === RecordType.SOA && name.equals(apex)) soaRecords++;
        into.addOnce(name, type);
      }
      if (soaRecords > 1) return;
    }
    throw new Error("the transfer ended early");
  } catch (error) {
    if (error instanceof FlagError) throw error;
    throw new FlagError(
      `-zone ${zone}: ${remote.text} does not transfer it (${messageOf(error)}): allow it there with the directive transfer, or use -queries`,
      2,
      false,
    );
  }
}
