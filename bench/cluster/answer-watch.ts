/** Asks one name again and again, and notes when which address first came. */

import { connectUdp } from "../load/udp-socket.ts";
import { encodeQuery } from "../run/ask.ts";
import { monotonicMilliseconds } from "./monotonic-time.ts";

export interface AnswerWatchOptions {
  readonly port: number;
  readonly name: string;
  readonly seconds: number;
}

/** Addresses as numbers, and when the first answer with each had come, by {@link monotonicMilliseconds}. */
export type FirstSeen = readonly (readonly [address: number, seenAt: number])[];

/** Milliseconds between an answer and the next question: what it asks takes few percents of the server's time. */
const PAUSE = 0.1;
const PATIENCE = 50;

/** Runs to the end without giving way to anything else in this process. */
export async function watchAnswers({ port, name, seconds }: AnswerWatchOptions): Promise<FirstSeen> {
  const socket = await connectUdp(Uint8Array.of(127, 0, 0, 1), port);
  const query = encodeQuery({ name, type: "A" });
  const seen: [address: number, seenAt: number][] = [];
  let last = -1;
  for (const end = monotonicMilliseconds() + seconds * 1000; monotonicMilliseconds() < end; ) {
    const buffer = socket.sending.buffer();
    buffer.set(query);
    socket.sending.commit(query.length);
    socket.sending.flush();
    for (const deadline = monotonicMilliseconds() + PATIENCE; socket.receive() === 0; ) {
      const rest = deadline - monotonicMilliseconds();
      if (rest <= 0) break;
      socket.wait(rest);
    }
    const now = monotonicMilliseconds();
    const reply = socket.received.slots[0];
    const address = reply === undefined ? -1 : onlyAddress(reply, socket.received.length(0));
    if (address !== last) {
      last = address;
      if (address !== -1) seen.push([address, now]);
    }
    socket.wait(PAUSE);
  }
  socket.close();
  return seen;
}

/** The address of a reply with one A record and nothing behind it; -1 for any other. */
export function onlyAddress(reply: Uint8Array, length: number): number {
  const answers = ((reply[6] ?? 0) << 8) | (reply[7] ?? 0);
  const others = (reply[8] ?? 0) | (reply[9] ?? 0) | (reply[10] ?? 0) | (reply[11] ?? 0);
  if (answers !== 1 || others !== 0 || length < 32) return -1;
  const at = length - 4;
  return (
    (((reply[at] ?? 0) << 24) |
      ((reply[at + 1] ?? 0) << 16) |
      ((reply[at + 2] ?? 0) << 8) |
      (reply[at + 3] ?? 0)) >>>
    0
  );
}
