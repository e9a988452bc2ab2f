/** A QUIC server on one UDP socket, in its own thread. */
import {
  askForPacketInfo,
  BATCH,
  CONTROL_WORDS,
  NAME_STRIDE,
  ReceiveBatch,
  SendBatch,
} from "../../runtime/linux/datagram-batch.ts";
import type { Reader } from "../../runtime/linux/event-loop.ts";
import { Linux, SocketAddress4, SocketAddress6 } from "../../runtime/linux/layouts.ts";
import type { LinuxSockets } from "../../runtime/linux/linux-sockets.ts";
import type { QuicConnection, QuicConnectionUser } from "../quic.ts";
import { ArrivalTable } from "./arrival-table.ts";
import { DATAGRAM_OCTETS, PipeBatch } from "./datagram-pipe.ts";
import type { QuicLibrary } from "./library.ts";
import type { ServerContext } from "./server-context.ts";
import { Shard } from "./shard.ts";
import { StreamMemory } from "./stream.ts";

export interface QuicServerOptions {
  readonly library: QuicLibrary;
  readonly sockets: LinuxSockets;
  /** Of a bound UDP socket that no other code reads. */
  readonly fd: number;
  readonly family: 4 | 6;
  /** Whether it is bound to all addresses. */
  readonly isWildcard: boolean;
  readonly context: ServerContext;
  /** Open streams of one client. */
  readonly maxStreams: () => number;
  /** Octets held for one client until its further streams wait. */
  readonly maxHeldForPeer: () => number;
  /** Handshakes that may start in a second. */
  readonly handshakesPerSecond: number;
  /** Makes it unpredictable which clients share a listener. */
  readonly seed: number;
  /** @returns `undefined` to refuse the connection, which the callee has closed */
  readonly onConnection: (connection: QuicConnection) => QuicConnectionUser | undefined;
  /** A handshake is refused because there are too many. */
  readonly onTurnedAway: () => void;
  /** All received datagrams have been processed. */
  readonly onTurn: () => void;
  readonly onError: (error: Error) => void;
}

/** OpenSSL listeners behind the socket. */
const SHARDS = 64;
/** Replaces the number of a shard. */
const NOBODY = 255;
const DATAGRAMS_A_TURN = 16 * BATCH;

export class QuicServer implements Reader {
  readonly #options: QuicServerOptions;
  readonly #received: ReceiveBatch;
  readonly #sending: SendBatch;
  readonly #nameLength: number;
  /** End of family, port and address in a socket address. */
  readonly #addressEnd: number;
  readonly #arrivals: ArrivalTable | undefined;
  readonly #memory = new StreamMemory();
  readonly #batch: PipeBatch;
  /** Each is made for its first client. */
  readonly #shards: (Shard | undefined)[] = Array.from({ length: SHARDS });
  readonly #shardOfSlot = new Uint8Array(BATCH);
  readonly #touched = new Set<Shard>();
  #isScheduled = false;
  #handshakes: number;
  #countedAt = performance.now();
  #lastError = 0;
  #isClosed = false;

  /** @throws QuicUnavailable */
  constructor(options: QuicServerOptions) {
    this.#options = options;
    const { libc, loop } = options.sockets;
    const { fd, family, onError } = options;
    const packetInfo = options.isWildcard && askForPacketInfo(libc, fd, family) === 0;
    const batch = { slotOctets: DATAGRAM_OCTETS, named: family, packetInfo };
    this.#received = new ReceiveBatch(libc, batch);
    // As in a congested network: QUIC retransmits.
    const failures = { full: () => undefined, refused: () => undefined };
    this.#sending = SendBatch.through(libc, fd, batch, failures);
    this.#nameLength = family === 4 ? SocketAddress4.OCTETS : SocketAddress6.OCTETS;
    this.#addressEnd = family === 4 ? SocketAddress4.ADDRESS + 4 : SocketAddress6.ADDRESS + 16;
    this.#arrivals = packetInfo ? new ArrivalTable(this.#addressEnd) : undefined;
    this.#batch = new PipeBatch(options.library);
    this.#handshakes = options.handshakesPerSecond;
    // Made at once, so that a missing function is reported at the start.
    this.#shards[0] = this.#newShard();
    const errno = loop.watch(fd, this);
    if (errno !== 0) onError(new Error(`the system does not report datagrams (errno ${errno})`));
  }

  /** Octets held for all clients. See {@link QuicConnection.held}. */
  get held(): number {
    return this.#memory.held;
  }

  /** Connections that hold any. */
  get holders(): number {
    return this.#memory.holders;
  }

  /** Including closed ones that are not freed yet. */
  get connections(): number {
    return this.#shards.reduce((sum, shard) => sum + (shard?.connections ?? 0), 0);
  }

  /** Checks again for waiting streams. */
  touchAll(): void {
    for (const shard of this.#shards) if (shard !== undefined) this.#touch(shard);
  }

  readable(): boolean {
    if (this.#isClosed) return false;
    let taken = 0;
    let count: number;
    do {
      count = this.#received.receive(this.#options.fd);
      if (count > 0) {
        this.#deal(count);
        // Many datagrams may open many streams: the user is to see them before more are read.
        this.run();
      }
      taken += Math.max(0, count);
    } while (count === BATCH && taken < DATAGRAMS_A_TURN && !this.#isClosed);
    this.#note(count < 0 && count !== -Linux.EAGAIN && count !== -Linux.EINTR ? -count : 0);
    return true;
  }

  /** Processes everything that was touched, and sends the results. */
  run(): void {
    if (this.#isClosed) return;
    // Data of one connection may touch others.
    for (const shard of this.#touched) {
      this.#touched.delete(shard);
      shard.run();
    }
    this.#sending.flush();
    this.#options.onTurn();
  }

  close(): void {
    if (this.#isClosed) return;
    this.run();
    this.#isClosed = true;
    for (const shard of this.#shards) shard?.close();
    this.#options.sockets.loop.close(this.#options.fd);
  }

  /** Distributes the datagrams of a batch, those of one shard together. */
  #deal(count: number): void {
    const shardOf = this.#shardOfSlot;
    for (let slot = 0; slot < count; slot++) shardOf[slot] = this.#addressed(slot);
    for (let first = 0; first < count; first++) {
      const index = shardOf[first] as number;
      if (index === NOBODY) continue;
      const shard = this.#shardOf(index);
      for (let slot = first; slot < count; slot++) {
        if (shardOf[slot] !== index) continue;
        shardOf[slot] = NOBODY;
        if (shard !== undefined) this.#take(shard, slot);
      }
      if (shard === undefined) continue;
      shard.deliver();
      this.#touched.add(shard);
    }
  }

  /** @returns the number of the datagram's shard */
  #addressed(slot: number): number {
    const { names, packetInfo } = this.#received;
    if (this.#received.length(slot) === 0 || this.#received.cutOff(slot)) return NOBODY;
    const hash = this.#hash(names, slot * NAME_STRIDE);
    const octets = this.#received.packetInfoLength(slot);
    if (octets > 0)
      this.#arrivals?.note(hash, names, slot * NAME_STRIDE, packetInfo, slot * CONTROL_WORDS, octets);
    return hash % SHARDS;
  }

  #take(shard: Shard, slot: number): void {
    const octets = this.#received.slots[slot] as Uint8Array;
    const length = this.#received.length(slot);
    const { names } = this.#received;
    const nameAt = slot * NAME_STRIDE;
    if (!hasToken(octets, length)) shard.queue(octets, length, names, nameAt);
    else if (this.#mayBegin()) shard.begin(octets, length, names, nameAt);
    else this.#options.onTurnedAway();
  }

  /** A token bucket for one second of handshakes. */
  #mayBegin(): boolean {
    const { handshakesPerSecond } = this.#options;
    const now = performance.now();
    const grown = this.#handshakes + ((now - this.#countedAt) / 1000) * handshakesPerSecond;
    this.#handshakes = Math.min(handshakesPerSecond, grown);
    this.#countedAt = now;
    if (this.#handshakes < 1) return false;
    this.#handshakes--;
    return true;
  }

  #shardOf(index: number): Shard | undefined {
    let shard = this.#shards[index];
    if (shard !== undefined) return shard;
    try {
      shard = this.#newShard();
    } catch (error) {
      this.#options.onError(error instanceof Error ? error : new Error(String(error)));
      return undefined;
    }
    this.#shards[index] = shard;
    return shard;
  }

  #newShard(): Shard {
    const { library, context, maxStreams, maxHeldForPeer, onConnection } = this.#options;
    return new Shard({
      library,
      context: context.pointer,
      memory: this.#memory,
      batch: this.#batch,
      maxStreams,
      maxHeldForPeer,
      onConnection,
      sink: this.#send,
      onTouched: (shard) => this.#touch(shard),
    });
  }

  #touch(shard: Shard): void {
    this.#touched.add(shard);
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.run();
    });
  }

  readonly #send = (
    octets: Uint8Array,
    at: number,
    length: number,
    names: Uint8Array,
    nameAt: number,
  ): void => {
    const out = this.#sending.buffer();
    out.set(octets.subarray(at, at + length));
    const arrivals = this.#arrivals;
    if (arrivals !== undefined) {
      const found = arrivals.find(this.#hash(names, nameAt), names, nameAt);
      this.#sending.leaveFrom(
        arrivals.packetInfo,
        Math.max(0, found),
        found < 0 ? 0 : arrivals.length(found),
      );
    }
    this.#sending.commitTo(length, names, nameAt, this.#nameLength);
  };

  #hash(names: Uint8Array, at: number): number {
    let hash = this.#options.seed;
    for (let index = 0; index < this.#addressEnd; index++) {
      hash = Math.imul(hash ^ (names[at + index] as number), 0x01000193);
    }
    hash ^= hash >>> 15;
    return Math.imul(hash, 0x2c1b3c6d) >>> 0;
  }

  #note(errno: number): void {
    if (errno === this.#lastError) return;
    this.#lastError = errno;
    if (errno !== 0)
      this.#options.onError(new Error(`the system refused to receive datagrams (errno ${errno})`));
  }
}

/**
 * Whether a datagram begins with an Initial packet that has a token (RFC 9000 section 17.2.2), so that it may open a connection.
 */
function hasToken(octets: Uint8Array, length: number): boolean {
  if (((octets[0] as number) & 0xb0) !== 0x80) return false;
  const destination = 6;
  const source = destination + (octets[5] ?? 0);
  const token = source + 1 + (octets[source] ?? 0);
  return token < length && octets[token] !== 0;
}
