/**
 * Datagrams by the batch: one system call takes or sends up to 64 of them. All memory that the kernel is shown is allocated
 * once and held by the batch, which must be held for as long as its socket is open.
 */
import { IoVector, Linux, MessageHeader, PacketInfo4, PacketInfo6 } from "./layouts.ts";
import { type Libc, setSocketNumber } from "./libc.ts";
import { SOCKET_ADDRESS_OCTETS } from "./socket-address.ts";
import type { WayOut } from "./way-out.ts";

export const BATCH = 64;

const HEADER = MessageHeader.OCTETS;
const IOVEC = IoVector.OCTETS;
// Fields that change are written as words of four octets: quicker than through a DataView.
const HEADER_WORDS = HEADER / 4;
const NAME_LENGTH_WORD = MessageHeader.NAME_LENGTH / 4;
const CONTROL_LENGTH_WORD = MessageHeader.CONTROL_LENGTH / 4;
const FLAGS_WORD = MessageHeader.FLAGS / 4;
const MESSAGE_LENGTH_WORD = MessageHeader.MESSAGE_LENGTH / 4;
const IOVEC_WORDS = IOVEC / 4;
const IOVEC_LENGTH_WORD = IoVector.LENGTH / 4;

/** Socket addresses stand so many octets, and words, apart, so that all are aligned. */
export const NAME_STRIDE = 32;
export const NAME_WORDS = NAME_STRIDE / 4;

/** What the kernel tells of a datagram stands so many octets, and words, apart. */
const CONTROL_STRIDE = 64;
export const CONTROL_WORDS = CONTROL_STRIDE / 4;

export interface BatchOptions {
  /** Octets of a datagram that there is room for. */
  readonly slotOctets: number;
  /** Whether datagrams have an address each: a connected socket has but one. */
  readonly named: boolean;
  /** Whether datagrams come and go with the address at which they were received: {@link askForPacketInfo}. */
  readonly packetInfo?: boolean;
  /** Datagrams of one system call; {@link BATCH} unless given. */
  readonly slots?: number;
}

export interface SendOptions extends BatchOptions {
  /** The batch's own socket, where it is to be told how to treat datagrams. */
  readonly own?: WayOut;
}

/** Has the kernel tell at which address each datagram of a socket arrived. @returns negative where it refuses */
export function askForPacketInfo(libc: Libc, fd: number, family: 4 | 6): number {
  return family === 4
    ? setSocketNumber(libc, fd, Linux.IPPROTO_IP, Linux.IP_PKTINFO, 1)
    : setSocketNumber(libc, fd, Linux.IPPROTO_IPV6, Linux.IPV6_RECVPKTINFO, 1);
}

interface BatchMemory {
  readonly headers: Uint8Array;
  readonly headerWords: Uint32Array;
  readonly iovecs: Uint8Array;
  readonly iovecWords: Uint32Array;
  readonly names: Uint8Array;
  readonly nameWords: Int32Array;
  readonly controls: Uint8Array;
  readonly controlWords: Uint32Array;
  /** The octets of each slot, one behind the other in one buffer. */
  readonly slots: readonly Uint8Array[];
}

function allocate(libc: Libc, options: BatchOptions, controlLength: number): BatchMemory {
  const { slotOctets, named, packetInfo = false, slots = BATCH } = options;
  const headers = new Uint8Array(new ArrayBuffer(HEADER * slots));
  const iovecs = new Uint8Array(new ArrayBuffer(IOVEC * slots));
  const names = new Uint8Array(new ArrayBuffer(NAME_STRIDE * slots));
  const controls = new Uint8Array(new ArrayBuffer(CONTROL_STRIDE * slots));
  const data = new Uint8Array(new ArrayBuffer(slotOctets * slots));
  const headerView = new DataView(headers.buffer);
  const iovecView = new DataView(iovecs.buffer);
  const [iovecsAt, namesAt, dataAt] = [libc.addressOf(iovecs), libc.addressOf(names), libc.addressOf(data)];
  const controlsAt = libc.addressOf(controls);
  for (let slot = 0; slot < slots; slot++) {
    const [header, iovec] = [slot * HEADER, slot * IOVEC];
    if (named) {
      headerView.setBigUint64(header + MessageHeader.NAME, BigInt(namesAt + slot * NAME_STRIDE), true);
      headerView.setUint32(header + MessageHeader.NAME_LENGTH, SOCKET_ADDRESS_OCTETS, true);
    }
    if (packetInfo) {
      headerView.setBigUint64(
        header + MessageHeader.CONTROL,
        BigInt(controlsAt + slot * CONTROL_STRIDE),
        true,
      );
      headerView.setUint32(header + MessageHeader.CONTROL_LENGTH, controlLength, true);
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
    nameWords: new Int32Array(names.buffer),
    controls,
    slots: Array.from({ length: slots }, (_, slot) =>
      data.subarray(slot * slotOctets, (slot + 1) * slotOctets),
    ),
    headerWords: new Uint32Array(headers.buffer),
    iovecWords: new Uint32Array(iovecs.buffer),
    controlWords: new Uint32Array(controls.buffer),
  };
}

export class ReceiveBatch {
  /** The octets of each slot; of a datagram the first `length(slot)` count. */
  readonly slots: readonly Uint8Array[];
  /** Socket addresses of the senders, {@link NAME_STRIDE} apart. */
  readonly names: Uint8Array;
  /** Where datagrams arrived, {@link CONTROL_WORDS} apart, to be given to {@link SendBatch.leaveFrom} as it is. */
  readonly packetInfo: Uint32Array;
  readonly #libc: Libc;
  readonly #memory: BatchMemory;
  readonly #named: boolean;
  readonly #informed: boolean;
  #filled = 0;

  constructor(libc: Libc, options: BatchOptions) {
    this.#libc = libc;
    this.#named = options.named;
    this.#informed = options.packetInfo ?? false;
    this.#memory = allocate(libc, options, CONTROL_STRIDE);
    this.names = this.#memory.names;
    this.slots = this.#memory.slots;
    this.packetInfo = this.#memory.controlWords;
  }

  /**
   * Takes what has arrived at a socket, without waiting.
   * @returns how many slots are filled; a negative number is the error that the socket had to tell (EAGAIN when nothing
   *   has arrived)
   */
  receive(fd: number): number {
    const { headers, headerWords } = this.#memory;
    // The kernel wrote the lengths of what it had to tell over those of the room for it.
    for (let slot = 0; slot < this.#filled; slot++) {
      const header = slot * HEADER_WORDS;
      if (this.#named) headerWords[header + NAME_LENGTH_WORD] = SOCKET_ADDRESS_OCTETS;
      if (this.#informed) headerWords[header + CONTROL_LENGTH_WORD] = CONTROL_STRIDE;
    }
    this.#filled = 0;
    const count = this.#libc.recvmmsg(fd, headers, this.slots.length, Linux.MSG_DONTWAIT, null);
    if (count < 0) return -this.#libc.errno();
    this.#filled = count;
    return count;
  }

  /** Octets of what stands in `packetInfo` for a slot; 0 where the kernel did not say. */
  packetInfoLength(slot: number): number {
    const length = this.#memory.headerWords[slot * HEADER_WORDS + CONTROL_LENGTH_WORD] as number;
    return length === PacketInfo4.SPACE || length === PacketInfo6.SPACE ? length : 0;
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
  readonly slotOctets: number;
  /**
   * Through which socket datagrams leave that say from which address, or all where none has to: one at the same address as the batch's own.
   * Without it they leave through that.
   */
  wayOut: WayOut | undefined;
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #own: WayOut | undefined;
  readonly #memory: BatchMemory;
  readonly #slots: readonly Uint8Array[];
  /** The same slots by the word, for those who ask. */
  #words: readonly Int32Array[] | undefined;
  readonly #failures: SendFailures;
  #count = 0;
  /** Octets of the longest of those that were taken. */
  #longest = 0;
  /** One of those that were taken leaves the choice of its address to the kernel. */
  #leavesChoice = false;

  constructor(libc: Libc, fd: number, options: SendOptions, failures: SendFailures) {
    this.#libc = libc;
    this.#fd = fd;
    this.#own = options.own;
    this.#failures = failures;
    this.slotOctets = options.slotOctets;
    this.#memory = allocate(libc, options, 0);
    this.#slots = this.#memory.slots;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Where the next datagram is to be written, at most `slotOctets` of it. Flushes first when all slots are taken. */
  buffer(): Uint8Array {
    if (this.#count === this.#slots.length) this.flush();
    return this.#slots[this.#count] as Uint8Array;
  }

  /** As {@link buffer}, by the word of 32 bits. */
  words(): Int32Array {
    if (this.#count === this.#slots.length) this.flush();
    this.#words ??= this.#slots.map(
      ({ buffer, byteOffset, length }) => new Int32Array(buffer, byteOffset, length >> 2),
    );
    return this.#words[this.#count] as Int32Array;
  }

  /** Takes the datagram in the buffer given last, for the socket address at `nameOffset` in `names`. */
  commitTo(length: number, names: Uint8Array, nameOffset: number, nameLength: number): void {
    const target = this.#memory.names;
    const start = this.#count * NAME_STRIDE;
    for (let at = 0; at < nameLength; at++) target[start + at] = names[nameOffset + at] as number;
    this.#memory.headerWords[this.#count * HEADER_WORDS + NAME_LENGTH_WORD] = nameLength;
    this.commit(length);
  }

  /** As {@link commitTo}, with the socket address from the word `at` on. It ends with a whole word. */
  commitToWords(length: number, names: Int32Array, at: number, nameLength: number): void {
    const target = this.#memory.nameWords;
    const start = this.#count * NAME_WORDS;
    const words = nameLength >> 2;
    for (let word = 0; word < words; word++) target[start + word] = names[at + word] as number;
    this.#memory.headerWords[this.#count * HEADER_WORDS + NAME_LENGTH_WORD] = nameLength;
    this.commit(length);
  }

  /**
   * Says from which address the datagram in the buffer given last shall leave; to be said of each one, or of none.
   * @param packetInfo as a {@link ReceiveBatch} tells it, from the word `at` on
   * @param octets 0 to leave the address to the kernel
   */
  leaveFrom(packetInfo: Uint32Array, at: number, octets: number): void {
    const { controls, controlWords, headerWords } = this.#memory;
    const start = this.#count * CONTROL_WORDS;
    const words = octets >> 2;
    for (let word = 0; word < words; word++) controlWords[start + word] = packetInfo[at + word] as number;
    // The way back is a matter of routes: it need not be that of the query. Only a link-local address means nothing without its link.
    if (octets === PacketInfo4.SPACE) controlWords[start + PacketInfo4.INTERFACE / 4] = 0;
    else if (octets === PacketInfo6.SPACE && !isLinkLocal(controls, start * 4 + PacketInfo6.ADDRESS))
      controlWords[start + PacketInfo6.INTERFACE / 4] = 0;
    headerWords[this.#count * HEADER_WORDS + CONTROL_LENGTH_WORD] = octets;
    if (octets === 0) this.#leavesChoice = true;
  }

  /** Takes the datagram in the buffer given last, for the peer of a connected socket. */
  commit(length: number): void {
    this.#memory.iovecWords[this.#count * IOVEC_WORDS + IOVEC_LENGTH_WORD] = length;
    if (length > this.#longest) this.#longest = length;
    this.#count++;
  }

  /** Sends all that was taken. What the kernel has no room for is given up and counted, as a full network queue would do. */
  flush(): void {
    const { headers, headerWords } = this.#memory;
    let done = 0;
    let retries = 0;
    // A socket that is connected has an address that it leaves from unless told otherwise: mostly the wrong one.
    let wayOut = this.#leavesChoice ? this.#own : (this.wayOut ?? this.#own);
    const longest = this.#longest;
    this.#leavesChoice = false;
    this.#longest = 0;
    wayOut?.prepare(longest);
    while (done < this.#count) {
      const sent = this.#libc.sendmmsg(
        wayOut === undefined ? this.#fd : wayOut.fd,
        done === 0 ? headers : headers.subarray(done * HEADER),
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
      // A network of this machine that takes very little.
      if (errno === Linux.EMSGSIZE && wayOut?.letCut() === true) continue;
      const controlLength = done * HEADER_WORDS + CONTROL_LENGTH_WORD;
      if (headerWords[controlLength] !== 0) {
        // Nothing can be sent from a broadcast or multicast address, nor from one that has gone meanwhile.
        headerWords[controlLength] = 0;
        wayOut = this.#own;
        wayOut?.prepare(longest);
        continue;
      }
      // It is the first of the rest that was refused: a connected socket also reports here what came back for an earlier one.
      this.#failures.refused(errno);
      done++;
    }
    this.#count = 0;
  }
}

/** fe80::/10 (RFC 4291 section 2.4). */
function isLinkLocal(octets: Uint8Array, at: number): boolean {
  return octets[at] === 0xfe && ((octets[at + 1] as number) & 0xc0) === 0x80;
}

/** Attempts to send with a socket whose buffer is full. */
export const MAX_RETRIES = 8;
