/**
 * Sockets without a system: what is sent to the upstream comes back as an answer, and clients are here. So all of our own code between two system
 * calls runs as it does in the server, and nothing else. It takes the place of `src/runtime/linux/linux-sockets.ts`: see `forward-path.ts`.
 */
import { Linux, MessageHeader } from "../../src/runtime/linux/layouts.ts";
import type { Libc } from "../../src/runtime/linux/libc.ts";

interface Reader {
  readable(): boolean;
}

/** The octets of A records with a pointer to the question's name. */
const RECORD = Uint8Array.of(0xc0, 12, 0, 1, 0, 1, 0, 0, 14, 16, 0, 4, 192, 0, 2, 10);
const HEADER_WORDS = MessageHeader.OCTETS / 4;
/** The largest number of messages in flight. */
const MOST = 256;

class Message {
  readonly octets = new Uint8Array(512);
  length = 0;
}

/** Messages that wait at one descriptor. */
class Inbox {
  readonly messages = Array.from({ length: MOST }, () => new Message());
  first = 0;
  count = 0;

  next(): Message {
    if (this.count >= MOST) throw new RangeError("more messages than the ring holds: nothing reads them");
    return this.messages[(this.first + this.count++) % MOST] as Message;
  }

  take(): Message {
    this.count--;
    const message = this.messages[this.first] as Message;
    this.first = (this.first + 1) % MOST;
    return message;
  }
}

/** A place in memory is its buffer's number in the upper word, and an offset in the lower. */
const memory: Uint8Array[] = [new Uint8Array(0)];
const wordsOf: Uint32Array[] = [new Uint32Array(0)];
const inboxes = new Map<number, Inbox>();
const wordsOfHeaders = new WeakMap<ArrayBufferLike, Uint32Array>();
const readers = new Map<number, Reader>();
/** Sockets come and go, and a system would not have us pay for that. */
const spare: Inbox[] = [];
let tasks: (() => void)[] = [];
let descriptors = 100;
let listening = -1;

/** Messages that clients have sent, and the number of replies. */
export const clients = { inbox: new Inbox(), answered: 0, lastReply: new Message() };

function forget(fd: number): void {
  const inbox = inboxes.get(fd);
  if (inbox === undefined || !inboxes.delete(fd)) return;
  inbox.count = 0;
  spare.push(inbox);
}

function headerWords(headers: Uint8Array): Uint32Array {
  let words = wordsOfHeaders.get(headers.buffer);
  if (words === undefined) {
    words = new Uint32Array(headers.buffer);
    wordsOfHeaders.set(headers.buffer, words);
  }
  return words;
}

function answer(inbox: Inbox, octets: Uint8Array, start: number, length: number): void {
  const reply = inbox.next();
  const { octets: out } = reply;
  for (let at = 0; at < length; at++) out[at] = octets[start + at] as number;
  for (let at = 0; at < RECORD.length; at++) out[length + at] = RECORD[at] as number;
  out[2] = (out[2] as number) | 0x84;
  out[3] = 0x80;
  out[7] = 1;
  reply.length = length + RECORD.length;
}

const libc: Libc = {
  socket: () => {
    const fd = descriptors++;
    inboxes.set(fd, spare.pop() ?? new Inbox());
    return fd;
  },
  bind: (fd) => {
    if (listening < 0) {
      listening = fd;
      inboxes.set(fd, clients.inbox);
    }
    return 0;
  },
  listen: () => 0,
  connect: () => 0,
  getsockname: (_fd, address) => {
    address.set([2, 0, 0, 53, 127, 0, 0, 1]);
    return 0;
  },
  setsockopt: () => 0,
  getsockopt: () => -1,
  close: (fd) => {
    forget(fd);
    return 0;
  },
  recvmmsg: (fd, headers, count) => {
    const inbox = inboxes.get(fd);
    if (inbox === undefined || inbox.count === 0) return -1;
    const words = headerWords(headers);
    const taken = Math.min(inbox.count, count);
    for (let slot = 0; slot < taken; slot++) {
      const header = slot * HEADER_WORDS;
      const message = inbox.take();
      const vectors = wordsOf[words[header + 5] as number] as Uint32Array;
      const vector = (words[header + 4] as number) >> 2;
      const out = memory[vectors[vector + 1] as number] as Uint8Array;
      const start = vectors[vector] as number;
      const { octets, length } = message;
      for (let at = 0; at < length; at++) out[start + at] = octets[at] as number;
      words[header + 14] = length;
      const name = words[header] as number;
      const names = wordsOf[words[header + 1] as number] as Uint32Array;
      if (words[header + 1] !== 0) {
        names[name >> 2] = 2 | ((0x100 + slot) << 16);
        names[(name >> 2) + 1] = 0x0100007f;
        words[header + 2] = 16;
      }
    }
    return taken;
  },
  sendmmsg: (fd, headers, count) => {
    const words = headerWords(headers);
    const first = headers.byteOffset / 4;
    // Whatever leaves for an upstream has no address.
    for (let message = 0; message < count; message++) {
      const header = first + message * HEADER_WORDS;
      const isReply = words[header + 1] !== 0;
      const vectors = wordsOf[words[header + 5] as number] as Uint32Array;
      const from = (words[header + 4] as number) >> 2;
      const vectorCount = words[header + 6] as number;
      for (let vector = from; vector < from + 4 * vectorCount; vector += 4) {
        const octets = memory[vectors[vector + 1] as number] as Uint8Array;
        const start = vectors[vector] as number;
        const length = vectors[vector + 2] as number;
        if (isReply) {
          clients.answered++;
          clients.lastReply.length = length;
          if (clients.answered % 1024 === 0)
            clients.lastReply.octets.set(octets.subarray(start, start + length));
        } else {
          const inbox = inboxes.get(fd);
          if (inbox !== undefined) answer(inbox, octets, start, length);
        }
      }
    }
    return count;
  },
  epollCreate: () => descriptors++,
  epollControl: () => 0,
  epollWait: () => 0,
  errno: () => Linux.EAGAIN,
  addressOf: (octets) => {
    memory.push(octets);
    wordsOf.push(new Uint32Array(octets.buffer, octets.byteOffset, octets.length >> 2));
    return (memory.length - 1) * 2 ** 32;
  },
};

const loop = {
  isTurnOver: false,
  watch(fd: number, reader: Reader): number {
    readers.set(fd, reader);
    return 0;
  },
  goOnLater(): void {
    throw new Error("turns have no end here");
  },
  silence(): void {
    // Only `turn` delivers messages.
  },
  close(fd: number): void {
    readers.delete(fd);
    forget(fd);
  },
  atTurnEnd(task: () => void): void {
    tasks.push(task);
  },
};

/** One turn of the event loop. */
export function turn(): void {
  for (const [fd, reader] of readers) if ((inboxes.get(fd)?.count ?? 0) > 0) reader.readable();
  const due = tasks;
  tasks = [];
  for (const task of due) task();
}

export async function linuxSockets(): Promise<unknown> {
  return { libc, loop };
}
