import { parseIpAddress } from "../../src/lib/net/ip-address.ts";
import { type Endpoint, FixedEndpoint } from "../../src/plugin/message/endpoint.ts";
import type { ReplyPort } from "../../src/transports/transport.ts";

/** A way back that leads nowhere: it keeps the last reply, as a slot of a batch does until it is sent. */
export class StubPort implements ReplyPort {
  readonly client: Endpoint = fixedEndpoint("127.0.0.1", 40_000);
  readonly local: Endpoint = fixedEndpoint("127.0.0.1", 53);
  readonly #buffer = new Uint8Array(4096);
  #length = 0;
  sent = 0;
  dropped = 0;

  /** The octets of the last reply. */
  get reply(): Uint8Array {
    return this.#buffer.subarray(0, this.#length);
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
