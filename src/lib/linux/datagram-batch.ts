/**
 * Datagrams by the batch: one system call takes or sends up to 64 of them. All memory that the kernel is shown is allocated
 * once and held by the batch, which must be held for as long as its socket is open.
 */
import { IoVector, Linux, MessageHeader } from "./layouts.ts";
import type { Libc } from "./libc.ts";
import { SOCKET_ADDRESS_OCTETS } from "./socket-address.ts";

export const BATCH = 64;

const HEADER = MessageHeader.OCTETS;
const IOVEC = IoVector.OCTETS;
// Fields that change are written as words of four octets: quicker than through a DataView.
const HEADER_WORDS = HEADER / 4;
const NAME_LENGTH_WORD = MessageHeader.NAME_LENGTH / 4;
const FLAGS_WORD = MessageHeader.FLAGS / 4;
const MESSAGE_LENGTH_WORD = MessageHeader.MESSAGE_LENGTH / 4;
const IOVEC_WORDS = IOVEC / 4;
const IOVEC_LENGTH_WORD = IoVector.LENGTH / 4;

/** Socket addresses stand 32 octets apart, so that all are aligned. */
export const NAME_STRIDE = 32;

interface BatchMemory {
  readonly headers: Uint8Array;
  readonly headerWords: Uint32Array;
  readonly iovecs: Uint8Array;
  readonly iovecWords: Uint32Array;
  readonly names: Uint8Array;
  readonly data: Uint8Array;
}

function allocate(libc: Libc, slotOctets: number, named: boolean): BatchMemory {
  const headers = new Uint8Array(new ArrayBuffer(HEADER * BATCH));
  const iovecs = new Uint8Array(new ArrayBuffer(IOVEC * BATCH));
  const names = new Uint8Array(new ArrayBuffer(NAME_STRIDE * BATCH));
  const data = new Uint8Array(new ArrayBuffer(slotOctets * BATCH));
  const headerView = new DataView(headers.buffer);
  const iovecView = new DataView(iovecs.buffer);
  const [iovecsAt, namesAt, dataAt] = [libc.addressOf(iovecs), libc.addressOf(names), libc.addressOf(data)];
  for (let slot = 0; slot < BATCH; slot++) {
    const [header, iovec] = [slot * HEADER, slot * IOVEC];
    if (named) {
      headerView.setBigUint64(header + MessageHeader.NAME, BigInt(namesAt + slot * NAME_STRIDE), true);
      headerView.setUint32(header + MessageHeader.NAME_LENGTH, SOCKET_ADDRESS_OCTETS, true);
    }
    headerView.setBigUint64(header + MessageHeader.VECTORS, BigInt(iovecsAt + iovec), true);
    headerView.setBigUint64(header + MessageHeader.VECTOR_COUNT, 1n, true);
    iovecView.setBigUint64(iovec + IoVector.BASE, BigInt(dataAt + slot * slotOctets), true);
    iovecView.setBigUint64(iovec + IoVector.LENGTH, BigInt(slotOctets), true);
  }
  return {
    headers,
    iovecs,
    names,
    data,
    headerWords: new Uint32Array(headers.buffer),
    iovecWords: new Uint32Array(iovecs.buffer),
  };
}

export class ReceiveBatch {
  /** The octets of each slot; of a datagram the first `length(slot)` count. */
  readonly slots: readonly Uint8Array[];
  /** Socket addresses of the senders, {@link NAME_STRIDE} apart. */
  readonly names: Uint8Array;
  readonly #libc: Libc;
  readonly #memory: BatchMemory;
  readonly #named: boolean;

  /** @param named whether senders are wanted: a connected socket has but one */
  constructor(libc: Libc, slotOctets: number, named: boolean) {
    this.#libc = libc;
    this.#named = named;
    this.#memory = allocate(libc, slotOctets, named);
    this.names = this.#memory.names;
    const { data } = this.#memory;
    this.slots = Array.from({ length: BATCH }, (_, slot) =>
      data.subarray(slot * slotOctets, (slot + 1) * slotOctets),
    );
  }

  /**
   * Takes what has arrived at a socket, without waiting.
   * @returns how many slots are filled; a negative number is the error that the socket had to tell (EAGAIN when nothing
   *   has arrived)
   */
  receive(fd: number): number {
    const { headers, headerWords } = this.#memory;
    const count = this.#libc.recvmmsg(fd, headers, BATCH, Linux.MSG_DONTWAIT, null);
    if (count < 0) return -this.#libc.errno();
    // The kernel wrote the lengths of the senders' addresses over those of the room for them.
    if (this.#named) {
      for (let slot = 0; slot < count; slot++)
        headerWords[slot * HEADER_WORDS + NAME_LENGTH_WORD] = SOCKET_ADDRESS_OCTETS;
    }
    return count;
  }

  length(slot: number): number {
    return this.#memory.headerWords[slot * HEADER_WORDS + MESSAGE_LENGTH_WORD] as number;
  }

  /** True when the datagram was larger than its slot. */
  cutOff(slot: number): boolean {
    return ((this.#memory.headerWords[slot * HEADER_WORDS + FLAGS_WORD] as number) & Linux.MSG_TRUNC) !== 0;
  }
}

/** What a flush could not send. */
export interface SendFailures {
  /** The socket's buffer was full: told for each datagram given up. */
  full(count: number): void;
  /** The kernel refused one datagram. */
  refused(errno: number): void;
}

export class SendBatch {
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #memory: BatchMemory;
  readonly #slots: readonly Uint8Array[];
  readonly #failures: SendFailures;
  readonly slotOctets: number;
  #count = 0;

  constructor(libc: Libc, fd: number, slotOctets: number, named: boolean, failures: SendFailures) {
    this.#libc = libc;
    this.#fd = fd;
    this.#failures = failures;
    this.slotOctets = slotOctets;
    this.#memory = allocate(libc, slotOctets, named);
    const { data } = this.#memory;
    this.#slots = Array.from({ length: BATCH }, (_, slot) =>
      data.subarray(slot * slotOctets, (slot + 1) * slotOctets),
    );
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Where the next datagram is to be written, at most `slotOctets` of it. Flushes first when all slots are taken. */
  buffer(): Uint8Array {
    if (this.#count === BATCH) this.flush();
    return this.#slots[this.#count] as Uint8Array;
  }

  /** Takes the datagram in the buffer given last, for the socket address at `nameOffset` in `names`. */
  commitTo(length: number, names: Uint8Array, nameOffset: number, nameLength: number): void {
    const target = this.#memory.names;
    const start = this.#count * NAME_STRIDE;
    for (let at = 0; at < nameLength; at++) target[start + at] = names[nameOffset + at] as number;
    this.#memory.headerWords[this.#count * HEADER_WORDS + NAME_LENGTH_WORD] = nameLength;
    this.commit(length);
  }

  /** Takes the datagram in the buffer given last, for the peer of a connected socket. */
  commit(length: number): void {
    this.#memory.iovecWords[this.#count * IOVEC_WORDS + IOVEC_LENGTH_WORD] = length;
    this.#count++;
  }

  /** Sends all that was taken. What the kernel has no room for is given up and counted, as a full network queue would do. */
  flush(): void {
    const { headers } = this.#memory;
    let done = 0;
    let retries = 0;
    while (done < this.#count) {
      const sent = this.#libc.sendmmsg(
        this.#fd,
        headers.subarray(done * HEADER),
        this.#count - done,
        Linux.MSG_DONTWAIT,
      );
      if (sent > 0) {
        done += sent;
        continue;
      }
      const errno = this.#libc.errno();
      if (errno === Linux.EINTR) continue;
      if (errno === Linux.EAGAIN || errno === Linux.ENOBUFS) {
        // The kernel drains a socket buffer within microseconds; one that stays full belongs to a network that is stuck.
        if (++retries <= MAX_RETRIES) continue;
        this.#failures.full(this.#count - done);
        break;
      }
      // It is the first of the rest that was refused: a connected socket also reports here what came back for an earlier one.
      this.#failures.refused(errno);
      done++;
    }
    this.#count = 0;
  }
}

const MAX_RETRIES = 8;
