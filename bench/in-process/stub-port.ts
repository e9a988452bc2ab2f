import { parseIpAddress } from "../../src/lib/ip-address.ts";
import { type Endpoint, FixedEndpoint } from "../../src/plugin/index.ts";
import type { MessageWords, ReplyPort } from "../../src/transports/transport.ts";

/** A way back that leads nowhere: it keeps the last reply, as a slot of a batch does until it is sent. */
export class StubPort implements ReplyPort {
  readonly client: Endpoint = fixedEndpoint("127.0.0.1", 40_000);
  readonly local: Endpoint = fixedEndpoint("127.0.0.1", 53);
  readonly #buffer = new Uint8Array(4096);
  readonly #bufferWords = new Int32Array(this.#buffer.buffer);
  words: MessageWords | undefined;
  #length = 0;
  sent = 0;
  dropped = 0;

  /** The octets of the last reply. */
  get reply(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
  }

  /** Lends the message by the word as well, as a batch of datagrams does. It has to begin at a word. */
  show({ buffer, byteOffset, byteLength }: Uint8Array): void {
    const message = new Int32Array(buffer, byteOffset, byteLength >> 2);
    this.words = { message, buffer: () => this.#bufferWords };
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    if (size > this.#buffer.length) throw new RangeError(`a reply of ${size} octets`);
    return this.#buffer;
  }

  send(length: number): void {
    this.#length = length;
    this.sent++;
  }

  drop(): void {
    this.dropped++;
  }
}

function fixedEndpoint(address: string, port: number): FixedEndpoint {
  const octets = parseIpAddress(address);
  if (octets === undefined) throw new RangeError(`not an IP address: ${address}`);
  return new FixedEndpoint(address, port, octets);
}
