import { createSocket } from "node:dgram";
import { decodeMessage, type Message } from "../dns/message.ts";
import { WireError } from "../dns/wire-reader.ts";
import type { Clock } from "../lib/time/clock.ts";

/** Sends one datagram and waits for its answer, without retries. */
export type AskOnce = (
  server: { readonly host: string; readonly port: number },
  query: Uint8Array,
  milliseconds: number,
) => Promise<Message>;

/** @returns a function that rejects if no answer arrives in time, or if the system reports an error */
export function askOnceWith(clock: Clock): AskOnce {
  return ({ host, port }, query, milliseconds) =>
    new Promise((resolve, reject) => {
      const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
      let isOver = false;
      const finish = (settle: () => void): void => {
        if (isOver) return;
        isOver = true;
        timer.cancel();
        socket.close();
        settle();
      };
      const fail = (error: Error): void => finish(() => reject(error));
      const timer = clock.after(milliseconds, () =>
        fail(new Error(`no answer from ${host}:${port} within ${milliseconds} ms`)),
      );
      // Stays for the life of the socket: no other listener handles its errors.
      socket.on("error", fail);
      socket.on("message", (octets) => {
        if (octets[0] !== query[0] || octets[1] !== query[1]) return;
        finish(() => {
          try {
            resolve(decodeMessage(octets));
          } catch (error) {
            if (!(error instanceof WireError)) throw error;
            reject(error);
          }
        });
      });
      // The lookup of a name may take longer than the timeout.
      socket.connect(port, host, (error?: Error) => {
        if (isOver) return;
        if (error !== undefined) fail(error);
        else socket.send(query, (failure) => (failure === null ? undefined : fail(failure)));
      });
    });
}
