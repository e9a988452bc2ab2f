/**
 * Datagrams to the peer of a connected socket, in batches and segments. Routing, filters and devices are most of the
 * kernel's cost of a datagram. The kernel pays it once for many datagrams that are passed as one to be cut into
 * segments (`UDP_SEGMENT`, udp(7)): all of the same length, except for a shorter one at the end.
 */
import { BATCH } from "./datagram-batch.ts";
import { MAX_RETRIES, type SendFailures } from "./datagram-sender.ts";
import { ControlHeader, IoVector, Linux, MessageHeader, SegmentLength } from "./layouts.ts";
import { type Libc, setSocketNumber } from "./libc.ts";
import { placesInMemory } from "./places-in-memory.ts";
import type { SegmentTrial } from "./segment-trial.ts";

const HEADER = MessageHeader.OCTETS;
const HEADER_WORDS = HEADER / 4;
const VECTORS_WORD = MessageHeader.VECTORS / 4;
const VECTOR_COUNT_WORD = MessageHeader.VECTOR_COUNT / 4;
const CONTROL_LENGTH_WORD = MessageHeader.CONTROL_LENGTH / 4;
const IOVEC_WORDS = IoVector.OCTETS / 4;
const IOVEC_LENGTH_WORD = IoVector.LENGTH / 4;
const CONTROL_HALVES = SegmentLength.SPACE / 2;
const SEGMENT_HALF = SegmentLength.VALUE / 2;

/** The largest datagram in octets: segments have to fit into the smallest packets that networks carry. */
const SLOT = 512;

/**
 * Whether the kernel cuts datagrams of this socket into segments. Linux has done so since 4.18, but not reliably
 * before 5.0.
 * @param release of the kernel, as `os.release()` reports it
 */
export function cutsSegments(libc: Libc, fd: number, release: string): boolean {
  if (!(Number.parseInt(release, 10) >= 5)) return false;
  return setSocketNumber(libc, fd, Linux.IPPROTO_UDP, Linux.UDP_SEGMENT, 0) >= 0;
}

export class SegmentedBatch {
  static readonly slotOctets = SLOT;
  readonly #libc: Libc;
  #fd = -1;
  #failures: SendFailures = NOBODY;
  readonly #slots: readonly Uint8Array[];
  readonly #headers = new Uint8Array(new ArrayBuffer(HEADER * BATCH));
  readonly #headerWords = new Uint32Array(this.#headers.buffer);
  readonly #iovecWords = new Uint32Array(new ArrayBuffer(IoVector.OCTETS * BATCH));
  readonly #controlHalves = new Uint16Array(new ArrayBuffer(SegmentLength.SPACE * BATCH));
  /** The addresses of each slot and each vector, as two words. */
  readonly #slotAddresses: Uint32Array;
  readonly #vectorAddresses: Uint32Array;
  readonly #lengths = new Uint16Array(BATCH);
  /** Linked lists of slots of the same length: the number of a slot plus one, 0 at the end. */
  readonly #slotsOf = new Uint8Array(SLOT + 1);
  readonly #next = new Uint8Array(BATCH);
  /** The first vector of each message, and after the last message the number of vectors. */
  readonly #firstVector = new Uint8Array(BATCH + 1);
  /** Absent if the kernel does not cut. */
  #trial: SegmentTrial | undefined;
  #count = 0;

  /** Costs no system call: short-lived sockets can share one, which is set to each socket {@link for} a burst. */
  constructor(libc: Libc) {
    this.#libc = libc;
    const data = new Uint8Array(new ArrayBuffer(SLOT * BATCH));
    this.#slots = Array.from({ length: BATCH }, (_, slot) => data.subarray(slot * SLOT, (slot + 1) * SLOT));
    this.#slotAddresses = placesInMemory(libc, data, SLOT, BATCH);
    const vectors = new Uint8Array(this.#iovecWords.buffer);
    this.#vectorAddresses = placesInMemory(libc, vectors, IoVector.OCTETS, BATCH);
    const controls = new Uint8Array(this.#controlHalves.buffer);
    const controlAddresses = placesInMemory(libc, controls, SegmentLength.SPACE, BATCH);
    const view = new DataView(controls.buffer);
    for (let message = 0; message < BATCH; message++) {
      const control = message * SegmentLength.SPACE;
      view.setUint32(control + ControlHeader.LENGTH, SegmentLength.LENGTH, true);
      view.setUint32(control + ControlHeader.LEVEL, Linux.IPPROTO_UDP, true);
      view.setUint32(control + ControlHeader.TYPE, Linux.UDP_SEGMENT, true);
      const words = message * HEADER_WORDS + MessageHeader.CONTROL / 4;
      this.#headerWords.set(controlAddresses.subarray(message * 2, message * 2 + 2), words);
    }
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /**
   * Sets the socket for the following datagrams. The batch has to be empty.
   * @param trial of the peer; absent if the kernel does not cut: {@link cutsSegments}
   */
  for(fd: number, trial: SegmentTrial | undefined, failures: SendFailures): this {
    this.#fd = fd;
    this.#trial = trial;
    this.#failures = failures;
    return this;
  }

  /**
   * The buffer for the next datagram, at most {@link SegmentedBatch.slotOctets} long. Flushes first if all slots are
   * taken.
   */
  buffer(): Uint8Array {
    if (this.#count === BATCH) this.flush();
    return this.#slots[this.#count] as Uint8Array;
  }

  /** Commits the datagram in the last buffer. */
  commit(length: number): void {
    this.#lengths[this.#count++] = length;
  }

  /**
   * Sends all committed datagrams, possibly in another order. What the kernel has no room for is dropped, as in
   * `DatagramSender`.
   */
  flush(): void {
    const count = this.#count;
    this.#count = 0;
    const headers = this.#headers;
    let messages = this.#arrange(count);
    let done = 0;
    let retries = 0;
    while (done < messages) {
      const rest = done === 0 ? headers : headers.subarray(done * HEADER);
      const sent = this.#libc.sendmmsg(this.#fd, rest, messages - done, Linux.MSG_DONTWAIT);
      if (sent > 0) {
        done += sent;
        continue;
      }
      const errno = this.#libc.errno();
      const first = this.#firstVector[done] as number;
      if (errno === Linux.EINTR) continue;
      if (errno === Linux.EAGAIN || errno === Linux.ENOBUFS) {
        if (++retries <= MAX_RETRIES) continue;
        this.#failures.full(count - first);
        return;
      }
      if ((this.#firstVector[done + 1] as number) - first === 1) {
        this.#failures.refused(errno);
        done++;
        continue;
      }
      // Either segments do not work on this path, or the error belongs to an earlier datagram. In neither case are
      // all of these dropped.
      if (NO_SEGMENTS.has(errno)) this.#trial?.refused();
      else this.#failures.refused(errno);
      messages = this.#separate(first, count);
      done = 0;
    }
  }

  /**
   * Makes messages of the slots, the longest first: those of the same length in one, and a shorter one at its end.
   * @returns the number of messages
   */
  #arrange(count: number): number {
    let allowance = count > 1 && this.#trial !== undefined ? this.#trial.allowance : 0;
    let [longest, shortest] = [0, SLOT];
    for (let slot = count - 1; slot >= 0; slot--) {
      const length = this.#lengths[slot] as number;
      this.#next[slot] = this.#slotsOf[length] as number;
      this.#slotsOf[length] = slot + 1;
      if (length > longest) longest = length;
      if (length < shortest) shortest = length;
    }
    let messages = 0;
    let vectors = 0;
    let segment = 0;
    let first = 0;
    for (let length = longest; length >= shortest; length--) {
      for (let slot = this.#slotsOf[length] as number; slot !== 0; slot = this.#next[slot - 1] as number) {
        if (segment === 0) {
          this.#firstVector[messages++] = vectors;
          segment = length;
          first = slot - 1;
        }
        this.#setVector(vectors++, slot - 1, length);
        const segments = vectors - (this.#firstVector[messages - 1] as number);
        if (segments === 2) this.#trial?.sent(this.#startOf(first), this.#startOf(slot - 1));
        if (length === segment && segments < allowance) continue;
        if (segments > 1) allowance -= segments;
        segment = 0;
      }
      this.#slotsOf[length] = 0;
    }
    this.#firstVector[messages] = vectors;
    for (let message = 0; message < messages; message++) this.#setHeader(message);
    return messages;
  }

  /** Makes a message of each vector from `first` on. @returns the number of messages */
  #separate(first: number, count: number): number {
    const messages = count - first;
    for (let message = 0; message <= messages; message++) this.#firstVector[message] = first + message;
    for (let message = 0; message < messages; message++) this.#setHeader(message);
    return messages;
  }

  #startOf(slot: number): number {
    const octets = this.#slots[slot] as Uint8Array;
    return ((octets[0] as number) << 8) | (octets[1] as number);
  }

  #setVector(vector: number, slot: number, length: number): void {
    const words = vector * IOVEC_WORDS;
    this.#iovecWords[words] = this.#slotAddresses[slot * 2] as number;
    this.#iovecWords[words + 1] = this.#slotAddresses[slot * 2 + 1] as number;
    this.#iovecWords[words + IOVEC_LENGTH_WORD] = length;
  }

  #setHeader(message: number): void {
    const words = message * HEADER_WORDS;
    const vector = this.#firstVector[message] as number;
    const segments = (this.#firstVector[message + 1] as number) - vector;
    this.#headerWords[words + VECTORS_WORD] = this.#vectorAddresses[vector * 2] as number;
    this.#headerWords[words + VECTORS_WORD + 1] = this.#vectorAddresses[vector * 2 + 1] as number;
    this.#headerWords[words + VECTOR_COUNT_WORD] = segments;
    this.#headerWords[words + CONTROL_LENGTH_WORD] = segments > 1 ? SegmentLength.SPACE : 0;
    this.#controlHalves[message * CONTROL_HALVES + SEGMENT_HALF] = this.#iovecWords[
      vector * IOVEC_WORDS + IOVEC_LENGTH_WORD
    ] as number;
  }
}

const NOBODY: SendFailures = Object.freeze({ full: () => undefined, refused: () => undefined });

/**
 * The reasons why the kernel does not cut: a device without checksum offload, or IPsec; a packet that is too small;
 * an unsupported address family or device.
 */
const NO_SEGMENTS: ReadonlySet<number> = new Set([Linux.EIO, Linux.EINVAL, Linux.EMSGSIZE, Linux.EOPNOTSUPP]);
