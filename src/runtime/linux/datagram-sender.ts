/** The way of a batch of datagrams into the kernel, with everything that can go wrong on it. */
import { Linux, MessageHeader } from "./layouts.ts";
import type { Libc } from "./libc.ts";
import type { WayOut } from "./way-out.ts";

const HEADER = MessageHeader.OCTETS;
const HEADER_WORDS = HEADER / 4;
const CONTROL_LENGTH_WORD = MessageHeader.CONTROL_LENGTH / 4;

/** Attempts to send with a socket whose buffer is full. */
export const MAX_RETRIES = 8;

/** What could not be sent. */
export interface SendFailures {
  /** The socket's buffer was full: told for each datagram given up. */
  full(count: number): void;
  /** The kernel refused one datagram. */
  refused(errno: number): void;
}

export class DatagramSender {
  /**
   * Through which socket datagrams leave that say from which address, or all where none has to: one at the same address as the sender's own.
   * Without it they leave through that.
   */
  wayOut: WayOut | undefined;
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #own: WayOut | undefined;
  readonly #failures: SendFailures;

  /** @param own the socket itself, where it is to be told how to treat datagrams */
  constructor(libc: Libc, fd: number, failures: SendFailures, own?: WayOut) {
    this.#libc = libc;
    this.#fd = fd;
    this.#failures = failures;
    this.#own = own;
  }

  /**
   * Sends datagrams. What the kernel has no room for is given up and counted, as a full network queue would do.
   * @param headers an array of `struct mmsghdr`, and the same by the word
   * @param longest octets of the longest of them
   * @param leavesChoice one of them leaves the choice of its address to the kernel
   */
  send(
    headers: Uint8Array,
    headerWords: Uint32Array,
    count: number,
    longest: number,
    leavesChoice: boolean,
  ): void {
    let done = 0;
    let retries = 0;
    // A socket that is connected has an address that it leaves from unless told otherwise: mostly the wrong one.
    let wayOut = leavesChoice ? this.#own : (this.wayOut ?? this.#own);
    wayOut?.prepare(longest);
    while (done < count) {
      const sent = this.#libc.sendmmsg(
        wayOut === undefined ? this.#fd : wayOut.fd,
        done === 0 ? headers : headers.subarray(done * HEADER),
        count - done,
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
        this.#failures.full(count - done);
        return;
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
  }
}
