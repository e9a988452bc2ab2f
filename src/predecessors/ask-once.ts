import { createSocket } from "node:dgram";
import { decodeMessage, type Message } from "../dns/message.ts";
import { WireError } from "../dns/wire-reader.ts";
import type { Clock } from "../lib/time/clock.ts";

/** Sends one datagram and waits for the answer to it, without asking again. */
export type AskOnce = (
  server: { readonly host: string; readonly port: number },
  query: Uint8Array,
  milliseconds: number,
) => Promise<Message>;

/** @returns a function that rejects where there is no answer in time, or the system says so */
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
      // For as long as the socket lives: nobody else hears of it.
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
      // A name may be looked up for longer than there is time.
      socket.connect(port, host, (error?: Error) => {
        if (isOver) return;
        if (error !== undefined) fail(error);
        else socket.send(query, (failure) => (failure === null ? undefined : fail(failure)));
      });
    });
}
