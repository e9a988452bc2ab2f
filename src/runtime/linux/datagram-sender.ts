/** Sends a batch of datagrams, with all error handling. */
import { Linux, MessageHeader } from "./layouts.ts";
import type { Libc } from "./libc.ts";
import type { WayOut } from "./way-out.ts";

const HEADER = MessageHeader.OCTETS;
const HEADER_WORDS = HEADER / 4;
const CONTROL_LENGTH_WORD = MessageHeader.CONTROL_LENGTH / 4;

/** Retries for a socket whose buffer is full. */
export const MAX_RETRIES = 8;

/** Receives send failures. */
export interface SendFailures {
  /** The socket's buffer was full: called with the number of dropped datagrams. */
  full(count: number): void;
  /** The kernel refused one datagram. */
  refused(errno: number): void;
}

export class DatagramSender {
  /**
   * The socket for datagrams with a source address, or for all if none has one; it must be bound to the sender's
   * address. Without it they are sent through the sender's own socket.
   */
  wayOut: WayOut | undefined;
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #own: WayOut | undefined;
  readonly #failures: SendFailures;

  /** @param own the socket itself, if it has to set how datagrams are treated */
  constructor(libc: Libc, fd: number, failures: SendFailures, own?: WayOut) {
    this.#libc = libc;
    this.#fd = fd;
    this.#failures = failures;
    this.#own = own;
  }

  /**
   * Sends datagrams. What the kernel has no room for is dropped and counted, as a full network queue would do.
   * @param headers an array of `struct mmsghdr`, and the same memory as words
   * @param longest octets of the longest datagram
   * @param leavesChoice whether a datagram leaves the choice of its address to the kernel
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
    // A connected socket has a fixed source address, which would be wrong for most of these.
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
        // The kernel drains a socket buffer within microseconds; if it stays full, the network is stuck.
        if (++retries <= MAX_RETRIES) continue;
        this.#failures.full(count - done);
        return;
      }
      // A local network with a very small MTU.
      if (errno === Linux.EMSGSIZE && wayOut?.letCut() === true) continue;
      const controlLength = done * HEADER_WORDS + CONTROL_LENGTH_WORD;
      if (headerWords[controlLength] !== 0) {
        // A broadcast or multicast address, or one that has been removed, cannot be the source.
        headerWords[controlLength] = 0;
        wayOut = this.#own;
        wayOut?.prepare(longest);
        continue;
      }
      // The error belongs to the first datagram of the rest: a connected socket also reports errors for earlier ones
      // here.
      this.#failures.refused(errno);
      done++;
    }
  }
}
