/** The server side of DNS over dedicated QUIC connections (RFC 9250). */
import { readU16 } from "../../dns/octets.ts";
import type { QuicStream, QuicStreamUser } from "../../quic/quic.ts";
import {
  type CloseCodes,
  type ConnectionHome,
  ServedConnection,
  type ServedStream,
} from "./served-connection.ts";

/** RFC 9250 section 4.3. */
export const DoqCode = {
  NO_ERROR: 0,
  INTERNAL_ERROR: 1,
  PROTOCOL_ERROR: 2,
  REQUEST_CANCELLED: 3,
  EXCESSIVE_LOAD: 4,
} as const;

export class DoqConnection extends ServedConnection {
  readonly codes: CloseCodes = {
    none: DoqCode.NO_ERROR,
    internal: DoqCode.INTERNAL_ERROR,
    excessiveLoad: DoqCode.EXCESSIVE_LOAD,
  };

  /** The protocol has no unidirectional streams (RFC 9250 section 4.3.3). */
  protected listen(_stream: QuicStream): QuicStreamUser {
    this.violate(DoqCode.PROTOCOL_ERROR, "unidirectional stream");
    return DEAF;
  }

  protected begin(stream: QuicStream): ServedStream {
    return new DoqRequest(this, stream, this.home);
  }
}

const DEAF: QuicStreamUser = { received: () => undefined, lost: () => undefined };

/** One query: its length in two octets, and the message. */
class DoqRequest implements ServedStream {
  readonly stream: QuicStream;
  readonly since: number;
  isAsked = false;
  readonly #connection: DoqConnection;
  readonly #home: ConnectionHome;
  #octets: Uint8Array = NO_OCTETS;

  constructor(connection: DoqConnection, stream: QuicStream, home: ConnectionHome) {
    this.#connection = connection;
    this.stream = stream;
    this.#home = home;
    this.since = home.now();
  }

  received(octets: Uint8Array, isLast: boolean): void {
    if (this.isAsked) {
      if (octets.length > 0) this.#violate("more than one query on a stream");
      return;
    }
    const octetsOfAll = this.#octets.length + octets.length;
    const all = this.#octets.length === 0 ? octets : Buffer.concat([this.#octets, octets]);
    const wanted = octetsOfAll < 2 ? 2 : 2 + readU16(all, 0);
    if (octetsOfAll > wanted) this.#violate("more than one query on a stream");
    else if (octetsOfAll < wanted) {
      if (isLast) this.#violate("stream ends within a query");
      else this.#keep(all);
    } else if (wanted < 2 + SHORTEST) this.#violate("query shorter than a header");
    else if (readU16(all, 2) !== 0) this.#violate("message id is not 0");
    else {
      this.isAsked = true;
      this.#connection.ask(this, all.subarray(2));
    }
  }

  lost(): void {
    this.#connection.forget(this);
  }

  end(): void {
    this.#home.letGo(this.#octets.length);
    this.#octets = NO_OCTETS;
  }

  #keep(all: Uint8Array): void {
    if (!this.#home.hold(all.length - this.#octets.length)) {
      this.stream.reset(DoqCode.EXCESSIVE_LOAD);
      this.#connection.forget(this);
      return;
    }
    // Lent octets are copied; joined ones are ours. `slice` of a Buffer would not copy.
    this.#octets = this.#octets.length === 0 ? Uint8Array.from(all) : all;
  }

  #violate(reason: string): void {
    this.#connection.violate(DoqCode.PROTOCOL_ERROR, reason);
  }
}

/** Octets of a header. */
const SHORTEST = 12;
const NO_OCTETS = new Uint8Array(0);
