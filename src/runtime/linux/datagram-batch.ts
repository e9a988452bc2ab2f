/**
 * Datagrams in batches: one system call receives or sends up to 64. All memory that the kernel accesses is allocated
 * once and held by the batch, which must be referenced as long as its socket is open.
 */
import { DatagramSender, type SendFailures } from "./datagram-sender.ts";
import {
  IoVector,
  Linux,
  MessageHeader,
  PacketInfo4,
  PacketInfo6,
  SocketAddress4,
  SocketAddress6,
} from "./layouts.ts";
import { type Libc, setSocketNumber } from "./libc.ts";
import { placesInMemory } from "./places-in-memory.ts";

export const BATCH = 64;

const HEADER = MessageHeader.OCTETS;
const IOVEC = IoVector.OCTETS;
// Changing fields are written as words of four octets, which is faster than a DataView.
const HEADER_WORDS = HEADER / 4;
const NAME_LENGTH_WORD = MessageHeader.NAME_LENGTH / 4;
const CONTROL_LENGTH_WORD = MessageHeader.CONTROL_LENGTH / 4;
const FLAGS_WORD = MessageHeader.FLAGS / 4;
const MESSAGE_LENGTH_WORD = MessageHeader.MESSAGE_LENGTH / 4;
const NAME_WORD = MessageHeader.NAME / 4;
const CONTROL_WORD = MessageHeader.CONTROL / 4;
const IOVEC_WORDS = IOVEC / 4;
const IOVEC_BASE_WORD = IoVector.BASE / 4;
const IOVEC_LENGTH_WORD = IoVector.LENGTH / 4;

/** The distance of socket addresses in octets and in words, so that all are aligned. */
export const NAME_STRIDE = 32;
export const NAME_WORDS = NAME_STRIDE / 4;

/** The distance of the kernel's control data of each datagram, in octets and in words. */
const CONTROL_STRIDE = 64;
export const CONTROL_WORDS = CONTROL_STRIDE / 4;

export interface BatchOptions {
  /** The largest datagram in octets. */
  readonly slotOctets: number;
  /** The family of the address that each datagram has; false for a connected socket, which has one peer. */
  readonly named: 4 | 6 | false;
  /** Whether datagrams carry the local address at which they were received: {@link askForPacketInfo}. */
  readonly packetInfo?: boolean;
  /** Datagrams per system call; {@link BATCH} unless given. */
  readonly slots?: number;
}

/** Makes the kernel report the local address of each datagram. @returns a negative number if it refuses */
export function askForPacketInfo(libc: Libc, fd: number, family: 4 | 6): number {
  return family === 4
    ? setSocketNumber(libc, fd, Linux.IPPROTO_IP, Linux.IP_PKTINFO, 1)
    : setSocketNumber(libc, fd, Linux.IPPROTO_IPV6, Linux.IPV6_RECVPKTINFO, 1);
}

/** Octets of a socket address. */
function nameOctets(family: 4 | 6): number {
  return family === 4 ? SocketAddress4.OCTETS : SocketAddress6.OCTETS;
}

interface BatchMemory {
  readonly headers: Uint8Array;
  readonly headerWords: Uint32Array;
  readonly iovecWords: Uint32Array;
  readonly names: Uint8Array;
  readonly nameWords: Int32Array;
  readonly controls: Uint8Array;
  readonly controlWords: Uint32Array;
  /** The octets of all slots, as words. */
  readonly words: Int32Array;
  /** The octets of each slot, as views of one buffer. */
  readonly slots: readonly Uint8Array[];
  /** The addresses in memory of each slot's name, control data and octets, as two words each. */
  readonly namePlaces: Uint32Array;
  readonly controlPlaces: Uint32Array;
  readonly slotPlaces: Uint32Array;
}

function allocate(libc: Libc, options: BatchOptions, controlLength: number): BatchMemory {
  const { slotOctets, slots = BATCH } = options;
  const names = new Uint8Array(new ArrayBuffer(NAME_STRIDE * slots));
  const controls = new Uint8Array(new ArrayBuffer(CONTROL_STRIDE * slots));
  const data = new Uint8Array(new ArrayBuffer((slotOctets * slots + 3) & ~3));
  const places = {
    namePlaces: placesInMemory(libc, names, NAME_STRIDE, slots),
    controlPlaces: placesInMemory(libc, controls, CONTROL_STRIDE, slots),
    slotPlaces: placesInMemory(libc, data, slotOctets, slots),
  };
  return {
    ...makeHeaders(libc, options, controlLength, places),
    ...places,
    names,
    nameWords: new Int32Array(names.buffer),
    controls,
    controlWords: new Uint32Array(controls.buffer),
    words: new Int32Array(data.buffer),
    slots: Array.from({ length: slots }, (_, slot) =>
      data.subarray(slot * slotOctets, (slot + 1) * slotOctets),
    ),
  };
}

type Headers = Pick<BatchMemory, "headers" | "headerWords" | "iovecWords">;

/** Headers that point to the slots in order. */
function makeHeaders(
  libc: Libc,
  { slotOctets, named, packetInfo = false, slots = BATCH }: BatchOptions,
  controlLength: number,
  { namePlaces, controlPlaces, slotPlaces }: Pick<BatchMemory, "namePlaces" | "controlPlaces" | "slotPlaces">,
): Headers {
  const headers = new Uint8Array(new ArrayBuffer(HEADER * slots));
  const headerWords = new Uint32Array(headers.buffer);
  const iovecs = new Uint8Array(new ArrayBuffer(IOVEC * slots));
  const iovecWords = new Uint32Array(iovecs.buffer);
  const iovecPlaces = placesInMemory(libc, iovecs, IOVEC, slots);
  for (let slot = 0; slot < slots; slot++) {
    const [header, iovec] = [slot * HEADER_WORDS, slot * IOVEC_WORDS];
    if (named !== false) {
      setPlace(headerWords, header + NAME_WORD, namePlaces, slot);
      headerWords[header + NAME_LENGTH_WORD] = nameOctets(named);
    }
    if (packetInfo) {
      setPlace(headerWords, header + CONTROL_WORD, controlPlaces, slot);
      headerWords[header + CONTROL_LENGTH_WORD] = controlLength;
    }
    setPlace(headerWords, header + MessageHeader.VECTORS / 4, iovecPlaces, slot);
    headerWords[header + MessageHeader.VECTOR_COUNT / 4] = 1;
    setPlace(iovecWords, iovec + IOVEC_BASE_WORD, slotPlaces, slot);
    iovecWords[iovec + IOVEC_LENGTH_WORD] = slotOctets;
  }
  return { headers, headerWords, iovecWords };
}

function setPlace(words: Uint32Array, at: number, places: Uint32Array, slot: number): void {
  words[at] = places[2 * slot] as number;
  words[at + 1] = places[2 * slot + 1] as number;
}

export class ReceiveBatch {
  /** The octets of each slot; the first `length(slot)` are the datagram. */
  readonly slots: readonly Uint8Array[];
  /** Socket addresses of the senders, {@link NAME_STRIDE} apart. */
  readonly names: Uint8Array;
  /** The local addresses of the datagrams, {@link CONTROL_WORDS} apart, as {@link SendBatch.leaveFrom} takes them. */
  readonly packetInfo: Uint32Array;
  /** The octets of all slots, as words; the slots are `slotWords` apart. */
  readonly words: Int32Array;
  readonly slotWords: number;
  readonly #libc: Libc;
  readonly #options: BatchOptions;
  readonly #memory: BatchMemory;
  readonly #informed: boolean;
  #filled = 0;

  constructor(libc: Libc, options: BatchOptions) {
    this.#libc = libc;
    this.#options = options;
    this.#informed = options.packetInfo ?? false;
    this.#memory = allocate(libc, options, CONTROL_STRIDE);
    this.words = this.#memory.words;
    this.slotWords = options.slotOctets / 4;
    this.names = this.#memory.names;
    this.slots = this.#memory.slots;
    this.packetInfo = this.#memory.controlWords;
  }

  /**
   * Receives what has arrived at a socket, without waiting.
   * @returns the number of filled slots; a negative number is the socket's error (EAGAIN if nothing has arrived)
   */
  receive(fd: number): number {
    const { headers, headerWords } = this.#memory;
    // The kernel has overwritten the size of the control buffer with the length of its data. The length of addresses
    // never changes.
    if (this.#informed)
      for (let slot = 0; slot < this.#filled; slot++)
        headerWords[slot * HEADER_WORDS + CONTROL_LENGTH_WORD] = CONTROL_STRIDE;
    this.#filled = 0;
    const count = this.#libc.recvmmsg(fd, headers, this.slots.length, Linux.MSG_DONTWAIT, null);
    if (count < 0) return -this.#libc.errno();
    this.#filled = count;
    return count;
  }

  /** Octets of a slot's data in `packetInfo`; 0 if the kernel did not report the address. */
  packetInfoLength(slot: number): number {
    const length = this.#memory.headerWords[slot * HEADER_WORDS + CONTROL_LENGTH_WORD] as number;
    return length === PacketInfo4.SPACE || length === PacketInfo6.SPACE ? length : 0;
  }

  length(slot: number): number {
    return this.#memory.headerWords[slot * HEADER_WORDS + MESSAGE_LENGTH_WORD] as number;
  }

  /** Whether the datagram was larger than its slot. */
  cutOff(slot: number): boolean {
    return ((this.#memory.headerWords[slot * HEADER_WORDS + FLAGS_WORD] as number) & Linux.MSG_TRUNC) !== 0;
  }

  /** For replies that are written over their queries. */
  returns(sender: DatagramSender): ReturnBatch {
    return new ReturnBatch(this.#libc, this.#options, this.#memory, this, sender);
  }
}

/** Datagrams that are sent together. */
abstract class OutgoingBatch {
  protected count = 0;
  /** Octets of the longest committed datagram. */
  protected longest = 0;
  /** Whether a committed datagram leaves the choice of its address to the kernel. */
  protected leavesChoice = false;
  readonly #sender: DatagramSender;
  readonly #headers: Headers;

  constructor(sender: DatagramSender, headers: Headers) {
    this.#sender = sender;
    this.#headers = headers;
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  /** Sends all committed datagrams. */
  flush(): void {
    const { headers, headerWords } = this.#headers;
    const { count, longest, leavesChoice } = this;
    this.count = 0;
    this.longest = 0;
    this.leavesChoice = false;
    this.#sender.send(headers, headerWords, count, longest, leavesChoice);
  }
}

/**
 * Replies that are written over their queries. They are sent back to the senders from the same memory: nothing is
 * copied, and the processor's caches hold half of what separate batches would need.
 */
export class ReturnBatch extends OutgoingBatch {
  readonly #memory: BatchMemory;
  readonly #received: ReceiveBatch;
  readonly #informed: boolean;
  readonly #headers: Headers;
  /** The slot that each header points to. */
  readonly #leadsTo: Uint8Array;

  constructor(
    libc: Libc,
    options: BatchOptions,
    memory: BatchMemory,
    received: ReceiveBatch,
    sender: DatagramSender,
  ) {
    const headers = makeHeaders(libc, options, 0, memory);
    super(sender, headers);
    this.#memory = memory;
    this.#received = received;
    this.#informed = options.packetInfo ?? false;
    this.#headers = headers;
    this.#leadsTo = Uint8Array.from(memory.slots.keys());
  }

  /** Commits the reply in a slot. It is sent before the next receive. */
  commit(slot: number, length: number): void {
    const index = this.count++;
    const { headerWords, iovecWords } = this.#headers;
    if (this.#leadsTo[index] !== slot) this.#lead(index, slot);
    iovecWords[index * IOVEC_WORDS + IOVEC_LENGTH_WORD] = length;
    if (length > this.longest) this.longest = length;
    if (!this.#informed) return;
    const { controls, controlWords } = this.#memory;
    const octets = this.#received.packetInfoLength(slot);
    forgetLink(controls, controlWords, slot * CONTROL_WORDS, octets);
    headerWords[index * HEADER_WORDS + CONTROL_LENGTH_WORD] = octets;
    if (octets === 0) this.leavesChoice = true;
  }

  #lead(index: number, slot: number): void {
    const { headerWords, iovecWords } = this.#headers;
    const { namePlaces, controlPlaces, slotPlaces } = this.#memory;
    this.#leadsTo[index] = slot;
    setPlace(headerWords, index * HEADER_WORDS + NAME_WORD, namePlaces, slot);
    if (this.#informed) setPlace(headerWords, index * HEADER_WORDS + CONTROL_WORD, controlPlaces, slot);
    setPlace(iovecWords, index * IOVEC_WORDS + IOVEC_BASE_WORD, slotPlaces, slot);
  }
}

export class SendBatch extends OutgoingBatch {
  readonly slotOctets: number;
  readonly #memory: BatchMemory;

  constructor(libc: Libc, options: BatchOptions, sender: DatagramSender) {
    const memory = allocate(libc, options, 0);
    super(sender, memory);
    this.slotOctets = options.slotOctets;
    this.#memory = memory;
  }

  /** Sends through one socket, always the same. */
  static through(libc: Libc, fd: number, options: BatchOptions, failures: SendFailures): SendBatch {
    return new SendBatch(libc, options, new DatagramSender(libc, fd, failures));
  }

  /** The buffer for the next datagram, at most `slotOctets` long. Flushes first if all slots are taken. */
  buffer(): Uint8Array {
    const { slots } = this.#memory;
    if (this.count === slots.length) this.flush();
    return slots[this.count] as Uint8Array;
  }

  /** Commits the datagram in the last buffer, for the socket address at `nameOffset` in `names`. */
  commitTo(length: number, names: Uint8Array, nameOffset: number, nameLength: number): void {
    const target = this.#memory.names;
    const start = this.count * NAME_STRIDE;
    for (let at = 0; at < nameLength; at++) target[start + at] = names[nameOffset + at] as number;
    this.#memory.headerWords[this.count * HEADER_WORDS + NAME_LENGTH_WORD] = nameLength;
    this.commit(length);
  }

  /** Like {@link commitTo}, with the socket address from the word `at` on. It ends with a whole word. */
  commitToWords(length: number, names: Int32Array, at: number, nameLength: number): void {
    const target = this.#memory.nameWords;
    const start = this.count * NAME_WORDS;
    const words = nameLength >> 2;
    for (let word = 0; word < words; word++) target[start + word] = names[at + word] as number;
    this.#memory.headerWords[this.count * HEADER_WORDS + NAME_LENGTH_WORD] = nameLength;
    this.commit(length);
  }

  /**
   * Sets the source address of the datagram in the last buffer; call it for every datagram, or for none.
   * @param packetInfo as a {@link ReceiveBatch} reports it, from the word `at` on
   * @param octets 0 leaves the address to the kernel
   */
  leaveFrom(packetInfo: Uint32Array, at: number, octets: number): void {
    const { controls, controlWords, headerWords } = this.#memory;
    const start = this.count * CONTROL_WORDS;
    const words = octets >> 2;
    for (let word = 0; word < words; word++) controlWords[start + word] = packetInfo[at + word] as number;
    forgetLink(controls, controlWords, start, octets);
    headerWords[this.count * HEADER_WORDS + CONTROL_LENGTH_WORD] = octets;
    if (octets === 0) this.leavesChoice = true;
  }

  /** Commits the datagram in the last buffer, for the peer of a connected socket. */
  commit(length: number): void {
    this.#memory.iovecWords[this.count * IOVEC_WORDS + IOVEC_LENGTH_WORD] = length;
    if (length > this.longest) this.longest = length;
    this.count++;
  }
}

/**
 * Removes the interface: routing decides the way back, which may differ from the query's. Only a link-local address
 * needs its interface.
 */
function forgetLink(controls: Uint8Array, controlWords: Uint32Array, start: number, octets: number): void {
  if (octets === PacketInfo4.SPACE) controlWords[start + PacketInfo4.INTERFACE / 4] = 0;
  else if (octets === PacketInfo6.SPACE && !isLinkLocal(controls, start * 4 + PacketInfo6.ADDRESS))
    controlWords[start + PacketInfo6.INTERFACE / 4] = 0;
}

/** fe80::/10 (RFC 4291 section 2.4). */
function isLinkLocal(octets: Uint8Array, at: number): boolean {
  return octets[at] === 0xfe && ((octets[at + 1] as number) & 0xc0) === 0x80;
}
