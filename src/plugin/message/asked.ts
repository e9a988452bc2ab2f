/** The facts of a query that its reply needs. */
import type { Edns } from "../../dns/edns.ts";
import type { Question } from "../../dns/message.ts";
import type { Name } from "../../dns/name.ts";
import type { TransportName } from "./endpoint.ts";

/** What a reply needs of its query. */
export interface Asked {
  readonly id: number;
  /** The second header word: QR, opcode, flags, rcode. */
  readonly flags: number;
  readonly opcode: number;
  readonly dnssecOk: boolean;
  readonly compactOk: boolean;
  /** The message; the question takes the octets from 12 to `questionEnd`. */
  readonly bytes: Uint8Array;
  /** End of the question's name, root octet included. */
  readonly nameEnd: number;
  readonly questionEnd: number;
  readonly name: Name;
  readonly type: number;
  readonly class: number;
  readonly question: Question;
  readonly hasEdns: boolean;
  /** Offset of OPT's type, -1 if the client sent none. */
  readonly optOffset: number;
  readonly edns: Edns | undefined;
  /** Codes of EDNS options that are echoed to the client. */
  readonly echoedOptions: ReadonlySet<number>;
  readonly transport: TransportName;
  /** Milliseconds that a connection of DNS over TCP or TLS may be silent. */
  readonly listener: { readonly idleTimeout?: number | undefined };
  /** The query as the client sent it. */
  readonly root: Asked;
  /** The query whose question this one has. */
  readonly questionOwner: Asked;
}
