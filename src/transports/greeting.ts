/** Strips greetings (the PROXY protocol) from streams and datagrams, below any protocol. */

import { type Greeting, GreetingError } from "../plugin/contract/greeting.ts";
import type { Endpoint } from "../plugin/message/endpoint.ts";
import type { Reply } from "../plugin/query/reply.ts";
import type { StreamLayer } from "./byte-stream-server.ts";
import type { MessageReceiver, PartPort, ReplyPort } from "./transport.ts";

/** More than any greeting needs, even a PROXY header with extensions. */
const MAX_GREETING = 4096;

/** @param onRefused called with the reason why a connection was closed, or a datagram skipped */
export function greetingLayer(greeting: Greeting, onRefused: (error: GreetingError) => void): StreamLayer {
  return {
    enter(stream, proceed) {
      const { socket, client, local } = stream;
      let octets = new Uint8Array(0);
      const onData = (data: Uint8Array): void => {
        octets = octets.length === 0 ? data.slice() : Buffer.concat([octets, data]);
        const reading = tryReading(() => greeting.readStream(octets, client, local), onRefused);
        if (reading === REFUSED || (reading === undefined && octets.length > MAX_GREETING)) {
          socket.destroy();
          return;
        }
        if (reading === undefined) return;
        socket.removeListener("data", onData);
        socket.pause();
        if (reading.length < octets.length) socket.unshift(octets.subarray(reading.length));
        proceed({ socket, client: reading.client ?? client, local: reading.local ?? local });
        // TLS and HTTP/2 read the buffered data themselves: a flowing socket without a listener would lose it.
        if (socket.listenerCount("data") > 0) socket.resume();
      };
      socket.on("data", onData);
    },
  };
}

/** @param greeting of the running configuration, if it has one */
export function greetedReceiver(
  receiver: MessageReceiver,
  greeting: () => Greeting | undefined,
  onRefused: (error: GreetingError) => void,
): MessageReceiver {
  // The arrival time of a skipped message was never noted.
  let isUnnoted = false;
  return {
    // A client behind a proxy sends a greeting before each message.
    get repeat() {
      return greeting() === undefined ? receiver.repeat : undefined;
    },
    receive(bytes, length, port, together) {
      const reader = greeting();
      if (reader === undefined) {
        receiver.receive(bytes, length, port, together);
        return;
      }
      const octets = bytes.subarray(0, length);
      const reading = tryReading(() => reader.readDatagram(octets, port.client, port.local), onRefused);
      if (reading === REFUSED || reading === undefined) {
        if (together !== true) isUnnoted = true;
        port.drop();
        return;
      }
      const isTogether = together === true && !isUnnoted;
      isUnnoted = false;
      const client = reading.client ?? port.client;
      const greeted = new GreetedPort(port, client, reading.local ?? port.local);
      receiver.receive(octets.subarray(reading.length), length - reading.length, greeted, isTogether);
    },
  };
}

const REFUSED = Symbol("refused");

function tryReading<T>(read: () => T, onRefused: (error: GreetingError) => void): T | typeof REFUSED {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof GreetingError)) throw error;
    onRefused(error);
    return REFUSED;
  }
}

/** The way back of a datagram through a proxy to the client behind it. */
class GreetedPort implements ReplyPort {
  readonly client: Endpoint;
  readonly local: Endpoint;
  readonly #port: ReplyPort;

  constructor(port: ReplyPort, client: Endpoint, local: Endpoint) {
    this.#port = port;
    this.client = client;
    this.local = local;
  }

  get parts(): PartPort | undefined {
    return this.#port.parts;
  }

  keep(): ReplyPort {
    return new GreetedPort(this.#port.keep(), this.client.snapshot(), this.local.snapshot());
  }

  buffer(size: number): Uint8Array {
    return this.#port.buffer(size);
  }

  describe(reply: Reply): void {
    this.#port.describe?.(reply);
  }

  send(length: number): void {
    this.#port.send(length);
  }

  drop(): void {
    this.#port.drop();
  }
}
