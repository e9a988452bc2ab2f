/** DNS over QUIC (RFC 9250), the client side, in the QUIC thread. */

import { readU16, writeU16 } from "../../dns/octets.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { DialledConnection, QuicDialler } from "../../quic/openssl/client.ts";
import type { ClientContext } from "../../quic/openssl/client-context.ts";
import type { QuicClosed, QuicConnectionUser, QuicStream, QuicStreamUser } from "../../quic/quic.ts";
import { NO_PAYLOAD, RecordWriter, readRecords } from "../../quic/records.ts";
import { Call, type CallPlace, CallReport } from "./calls.ts";

/** RFC 9250 section 4.3. */
const NO_ERROR = 0;
const PROTOCOL_ERROR = 2;
const REQUEST_CANCELLED = 3;
const LONGEST_ANSWER = 2 + 0xffff;

export interface CallerOptions {
  readonly dialler: QuicDialler;
  readonly context: ClientContext;
  post(octets: Uint8Array<ArrayBuffer>): void;
}

export class Caller {
  readonly #options: CallerOptions;
  readonly #calls = new Map<number, PlacedCall>();
  readonly #reports = new RecordWriter();
  #isScheduled = false;

  constructor(options: CallerOptions) {
    this.#options = options;
  }

  take(octets: Uint8Array): void {
    readRecords(octets, (kind, number, query, payload) => {
      if (kind === Call.DIAL) this.#dial(number, JSON.parse(Buffer.from(payload).toString()) as CallPlace);
      else if (kind === Call.ASK) this.#calls.get(number)?.ask(query, payload);
      else if (kind === Call.CANCEL) this.#calls.get(number)?.cancel(query);
      else this.#calls.get(number)?.hangUp();
    });
  }

  /** @param done called when the last packets have been sent */
  close(done: () => void): void {
    for (const call of this.#calls.values()) call.hangUp();
    // They are sent at the end of this turn.
    setImmediate(() => setImmediate(done));
  }

  #dial(number: number, place: CallPlace): void {
    const { dialler, context } = this.#options;
    const { address, port, sourceAddress, serverName, certifiedName } = place;
    const call = new PlacedCall((kind, query, payload) => {
      if (kind === CallReport.LOST) this.#calls.delete(number);
      this.#report(kind, number, query, payload);
    });
    this.#calls.set(number, call);
    try {
      dialler.dial(
        { peer: { address, port }, sourceAddress, serverName, certifiedName, protocol: "doq", context },
        (connection) => call.begin(connection),
      );
    } catch (error) {
      this.#calls.delete(number);
      const reason = messageOf(error);
      this.#report(CallReport.LOST, number, 0, Buffer.from(reason));
    }
  }

  #report(kind: number, number: number, query: number, payload: Uint8Array): void {
    this.#reports.add(kind, number, query, payload);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#options.post(this.#reports.take());
    });
  }
}

type Tell = (kind: number, query: number, payload: Uint8Array) => void;

/** One connection. */
class PlacedCall implements QuicConnectionUser {
  readonly #tell: Tell;
  /** Queries that wait for a stream: the handshake is running, or the server's stream limit is reached. */
  readonly #waiting = new Map<number, Uint8Array>();
  readonly #asked = new Map<number, QuicStream>();
  #connection: DialledConnection | undefined;
  #hasHungUp = false;

  constructor(tell: Tell) {
    this.#tell = tell;
  }

  begin(connection: DialledConnection): this {
    this.#connection = connection;
    return this;
  }

  connected(): void {
    this.#tell(CallReport.CONNECTED, 0, NO_PAYLOAD);
    this.#askWaiting();
  }

  /** RFC 9250 section 4.3.3: a server opens no streams. */
  accepted(): QuicStreamUser {
    this.#connection?.close(PROTOCOL_ERROR);
    return { received: () => undefined, lost: () => undefined };
  }

  closed({ by, code, text }: QuicClosed): void {
    if (this.#hasHungUp) return;
    const fault = this.#connection?.certificateFault;
    const reason =
      fault !== undefined
        ? `tls: failed to verify certificate: x509: ${fault}`
        : by === "peer" && code === NO_ERROR
          ? "EOF"
          : code === undefined
            ? text || "timeout: no recent network activity"
            : `Application error 0x${code.toString(16)} (${by === "peer" ? "remote" : "local"})`;
    this.#tell(CallReport.LOST, 0, Buffer.from(reason));
  }

  ask(query: number, message: Uint8Array): void {
    this.#waiting.set(query, message);
    if (this.#connection?.isConnected === true) this.#askWaiting();
  }

  cancel(query: number): void {
    this.#waiting.delete(query);
    const stream = this.#asked.get(query);
    this.#asked.delete(query);
    stream?.reset(REQUEST_CANCELLED);
  }

  hangUp(): void {
    this.#hasHungUp = true;
    this.#connection?.finish(NO_ERROR);
  }

  #askWaiting(): void {
    for (const [query, message] of this.#waiting) {
      const answer = new Answer((octets) => this.#answered(query, octets));
      const stream = this.#connection?.openStream(false, answer);
      if (stream === undefined) return;
      this.#waiting.delete(query);
      this.#asked.set(query, stream);
      const framed = new Uint8Array(2 + message.length);
      writeU16(framed, 0, message.length);
      framed.set(message, 2);
      stream.write(framed, true);
    }
  }

  #answered(query: number, octets: Uint8Array | undefined): void {
    const stream = this.#asked.get(query);
    if (!this.#asked.delete(query)) return;
    if (octets === undefined)
      this.#tell(CallReport.FAILED, query, Buffer.from("the server gave up the stream"));
    else if (octets.length < 2 || octets.length !== 2 + readU16(octets, 0)) {
      this.#tell(CallReport.FAILED, query, Buffer.from("a stream without a whole message"));
      stream?.reset(PROTOCOL_ERROR);
    } else this.#tell(CallReport.ANSWERED, query, octets.subarray(2));
    this.#askWaiting();
  }
}

/** Gathers the data of a stream. */
class Answer implements QuicStreamUser {
  readonly #done: (octets: Uint8Array | undefined) => void;
  #octets: Uint8Array = NO_PAYLOAD;

  constructor(done: (octets: Uint8Array | undefined) => void) {
    this.#done = done;
  }

  received(octets: Uint8Array, isLast: boolean): void {
    const all = this.#octets.length === 0 ? octets : Buffer.concat([this.#octets, octets]);
    if (isLast || all.length > LONGEST_ANSWER) this.#done(all);
    // Lent octets are copied.
    else this.#octets = this.#octets.length === 0 ? all.slice() : all;
  }

  lost(): void {
    this.#done(undefined);
  }
}
