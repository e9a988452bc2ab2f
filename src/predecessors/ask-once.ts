import { createSocket } from "node:dgram";
import { decodeMessage, type Message } from "../dns/message.ts";
import { WireError } from "../dns/wire-reader.ts";
import type { Clock } from "../lib/clock.ts";

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
      const finish = (settle: () => void): void => {
        timer.cancel();
        socket.close();
        settle();
      };
      const timer = clock.after(milliseconds, () =>
        finish(() => reject(new Error(`no answer from ${host}:${port} within ${milliseconds} ms`))),
      );
      socket.once("error", (error) => finish(() => reject(error)));
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
      socket.connect(port, host, () => socket.send(query, () => undefined));
    });
}
