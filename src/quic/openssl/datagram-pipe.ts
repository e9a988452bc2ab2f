/**
 * Moves datagrams in and out of OpenSSL through memory: one end belongs to OpenSSL, the other to us. So one socket serves many
 * listeners, and datagrams move in batches.
 */
import { SOCKET_ADDRESS_OCTETS } from "../../runtime/linux/socket-address.ts";
import { QuicUnavailable } from "../availability.ts";
import * as C from "./constants.ts";
import type { OpenSsl, Pointer, QuicLibrary } from "./library.ts";

/** Datagrams of one call. */
const BATCH = 64;
/** Maximum octets of a datagram, either way. */
export const DATAGRAM_OCTETS = 2048;
/** Maximum size of OpenSSL's datagrams: in tunnels and over IPv6, longer ones may not arrive. */
const MTU = 1472;
/** Octets that may wait at either end, addresses included. */
const ROOM = 64 * 1024;

/** Memory for one batch. All pipes of a thread share it, because it is only used within a call. */
export class PipeBatch {
  readonly octets = new Uint8Array(new ArrayBuffer(BATCH * DATAGRAM_OCTETS));
  /** Socket addresses, {@link C.BIO_ADDR_OCTETS} apart. */
  readonly names = new Uint8Array(new ArrayBuffer(BATCH * C.BIO_ADDR_OCTETS));
  readonly messages = new Uint8Array(new ArrayBuffer(BATCH * C.BioMessage.OCTETS));
  readonly done = new Uint8Array(new ArrayBuffer(8));
  readonly #view = new DataView(this.messages.buffer);
  readonly #doneView = new DataView(this.done.buffer);

  constructor(library: QuicLibrary) {
    const octetsAt = library.addressOf(this.octets);
    const namesAt = library.addressOf(this.names);
    for (let slot = 0; slot < BATCH; slot++) {
      const at = slot * C.BioMessage.OCTETS;
      this.#view.setBigUint64(at + C.BioMessage.DATA, BigInt(octetsAt + slot * DATAGRAM_OCTETS), true);
      this.#view.setBigUint64(at + C.BioMessage.LOCAL, BigInt(namesAt + slot * C.BIO_ADDR_OCTETS), true);
    }
  }

  get count(): number {
    return this.#doneView.getUint32(0, true);
  }

  length(slot: number): number {
    return this.#view.getUint32(slot * C.BioMessage.OCTETS + C.BioMessage.LENGTH, true);
  }

  setLength(slot: number, length: number): void {
    this.#view.setUint32(slot * C.BioMessage.OCTETS + C.BioMessage.LENGTH, length, true);
  }
}

/** Receives OpenSSL's datagrams. Octets and address are lent. */
export type DatagramSink = (
  octets: Uint8Array,
  at: number,
  length: number,
  names: Uint8Array,
  nameAt: number,
) => void;

export class DatagramPipe {
  /** OpenSSL's end, for `SSL_set_bio`, which takes ownership. */
  readonly inner: Pointer;
  readonly #ours: Pointer;
  readonly #ssl: OpenSsl;
  readonly #batch: PipeBatch;
  #queued = 0;

  /** @throws QuicUnavailable */
  constructor(library: QuicLibrary, batch: PipeBatch) {
    const { ssl } = library;
    this.#ssl = ssl;
    this.#batch = batch;
    const [ours, inner] = [new BigUint64Array(1), new BigUint64Array(1)];
    if (ssl.BIO_new_bio_dgram_pair(octetsOf(ours), ROOM, octetsOf(inner), ROOM) !== 1)
      throw new QuicUnavailable(`no memory for datagrams: ${library.errors()}`);
    this.#ours = Number(ours[0]);
    this.inner = Number(inner[0]);
    const mine = C.BIO_DGRAM_CAP_HANDLES_DST_ADDR | C.BIO_DGRAM_CAP_PROVIDES_SRC_ADDR;
    const theirs = C.BIO_DGRAM_CAP_HANDLES_SRC_ADDR | C.BIO_DGRAM_CAP_PROVIDES_DST_ADDR;
    ssl.BIO_ctrl(this.#ours, C.BIO_CTRL_DGRAM_SET_CAPS, mine, 0);
    ssl.BIO_ctrl(this.inner, C.BIO_CTRL_DGRAM_SET_CAPS, theirs, 0);
    ssl.BIO_ctrl(this.#ours, C.BIO_CTRL_DGRAM_SET_LOCAL_ADDR_ENABLE, 1, 0);
    ssl.BIO_ctrl(this.#ours, C.BIO_CTRL_DGRAM_SET_MTU, MTU, 0);
    ssl.BIO_ctrl(this.inner, C.BIO_CTRL_DGRAM_SET_MTU, MTU, 0);
  }

  /**
   * Queues a received datagram. It is passed on by {@link deliver}, before any other pipe uses the batch.
   * @returns false if the batch is full: deliver, and try again
   */
  queue(octets: Uint8Array, length: number, names: Uint8Array, nameAt: number): boolean {
    const slot = this.#queued;
    if (slot === BATCH) return false;
    const batch = this.#batch;
    batch.octets.set(length === octets.length ? octets : octets.subarray(0, length), slot * DATAGRAM_OCTETS);
    const start = slot * C.BIO_ADDR_OCTETS;
    for (let at = 0; at < SOCKET_ADDRESS_OCTETS; at++) batch.names[start + at] = names[nameAt + at] as number;
    batch.setLength(slot, length);
    this.#queued++;
    return true;
  }

  /**
   * Passes queued datagrams to OpenSSL.
   * @param process makes OpenSSL process its input, so that there is room again
   */
  deliver(process: () => void): void {
    let done = 0;
    while (done < this.#queued) {
      const { OCTETS } = C.BioMessage;
      const { messages } = this.#batch;
      const from = done === 0 ? messages : messages.subarray(done * OCTETS);
      const result = this.#ssl.BIO_sendmmsg(
        this.#ours,
        from,
        OCTETS,
        this.#queued - done,
        0,
        this.#batch.done,
      );
      const taken = result === 1 ? this.#batch.count : 0;
      this.#ssl.ERR_clear_error();
      process();
      // Datagrams that still do not fit after processing are lost, as in a congested network.
      if (taken === 0) break;
      done += taken;
    }
    this.#queued = 0;
  }

  /** Takes all datagrams that OpenSSL wants to send. @returns their number */
  drain(sink: DatagramSink): number {
    const batch = this.#batch;
    let all = 0;
    for (;;) {
      for (let slot = 0; slot < BATCH; slot++) batch.setLength(slot, DATAGRAM_OCTETS);
      const result = this.#ssl.BIO_recvmmsg(
        this.#ours,
        batch.messages,
        C.BioMessage.OCTETS,
        BATCH,
        0,
        batch.done,
      );
      if (result !== 1) {
        this.#ssl.ERR_clear_error();
        return all;
      }
      const { count } = batch;
      for (let slot = 0; slot < count; slot++)
        sink(batch.octets, slot * DATAGRAM_OCTETS, batch.length(slot), batch.names, slot * C.BIO_ADDR_OCTETS);
      all += count;
      if (count < BATCH) return all;
    }
  }

  close(): void {
    this.#ssl.BIO_free(this.#ours);
  }
}

function octetsOf(words: BigUint64Array): Uint8Array {
  return new Uint8Array(words.buffer);
}
