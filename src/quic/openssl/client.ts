/** QUIC connections to servers, each on its own UDP socket. */
import { ReceiveBatch, SendBatch } from "../../runtime/linux/datagram-batch.ts";
import type { Reader } from "../../runtime/linux/event-loop.ts";
import { Linux, SocketAddress4, SocketAddress6 } from "../../runtime/linux/layouts.ts";
import type { LinuxSockets } from "../../runtime/linux/linux-sockets.ts";
import { parseHost, writeSocketAddress } from "../../runtime/linux/socket-address.ts";
import { QuicUnavailable } from "../availability.ts";
import type { QuicConnection, QuicConnectionUser, QuicPeer } from "../quic.ts";
import type { ClientContext } from "./client-context.ts";
import { type ConnectionOptions, OpenSslConnection } from "./connection.ts";
import * as C from "./constants.ts";
import { DATAGRAM_OCTETS, DatagramPipe, PipeBatch } from "./datagram-pipe.ts";
import { EventTimer } from "./event-timer.ts";
import type { KeptSessions } from "./kept-sessions.ts";
import type { QuicLibrary } from "./library.ts";
import { protocolList } from "./server-context.ts";
import { StreamMemory } from "./stream.ts";

export interface QuicDial {
  readonly peer: QuicPeer;
  readonly sourceAddress?: string | undefined;
  /** Application protocol (ALPN). */
  readonly protocol: string;
  readonly context: ClientContext;
  /** The SNI name; absent for a server known by its address. */
  readonly serverName?: string | undefined;
  /** The name or address that the certificate must match. Without it any name is accepted. */
  readonly certifiedName?: string | undefined;
}

/** A connection opened by this side. */
export interface DialledConnection extends QuicConnection {
  /** The fault of the server's certificate; `undefined` if it is valid. */
  readonly certificateFault: string | undefined;
  /** Whether it resumed an earlier session; `false` before it is connected. */
  readonly isResumed: boolean;
}

export class QuicDialler {
  readonly library: QuicLibrary;
  readonly sockets: LinuxSockets;
  readonly memory = new StreamMemory();
  readonly batch: PipeBatch;
  readonly received: ReceiveBatch;
  readonly #open = new Set<ClientSocket>();

  constructor(library: QuicLibrary, sockets: LinuxSockets) {
    this.library = library;
    this.sockets = sockets;
    this.batch = new PipeBatch(library);
    this.received = new ReceiveBatch(sockets.libc, { slotOctets: DATAGRAM_OCTETS, named: false });
  }

  /**
   * Opens a connection. The outcome is reported to its user.
   * @throws QuicUnavailable, Error if no socket is available
   */
  dial(dial: QuicDial, user: (connection: DialledConnection) => QuicConnectionUser): DialledConnection {
    const socket = new ClientSocket(this, dial, user, () => this.#open.delete(socket));
    this.#open.add(socket);
    return socket.connection;
  }

  /** Closes all connections silently. */
  close(): void {
    for (const socket of this.#open) socket.close();
  }
}

class ClientConnection extends OpenSslConnection implements DialledConnection {
  readonly #library: QuicLibrary;
  readonly #sessions: KeptSessions;
  readonly #server: string;

  constructor(pointer: number, options: ConnectionOptions, dial: QuicDial) {
    super(pointer, options);
    const { peer, protocol, serverName, certifiedName, context } = dial;
    this.#library = options.library;
    this.#sessions = context.sessions;
    this.#server = JSON.stringify([peer.address, peer.port, protocol, serverName, certifiedName]);
    this.#sessions.resume(this.#server, pointer);
  }

  get isResumed(): boolean {
    return !this.isOver && this.#library.ssl.SSL_session_reused(this.pointer) === 1;
  }

  get certificateFault(): string | undefined {
    if (this.isOver) return undefined;
    const { ssl } = this.#library;
    const result = ssl.SSL_get_verify_result(this.pointer);
    return result === C.X509_V_OK ? undefined : ssl.X509_verify_cert_error_string(result);
  }

  protected override ending(): void {
    if (this.isConnected && this.certificateFault === undefined)
      this.#sessions.keep(this.#server, this.pointer);
  }
}

class ClientSocket implements Reader {
  readonly connection: ClientConnection;
  readonly #dialler: QuicDialler;
  readonly #fd: number;
  readonly #name = new Uint8Array(new ArrayBuffer(C.BIO_ADDR_OCTETS));
  readonly #pipe: DatagramPipe;
  readonly #sending: SendBatch;
  readonly #timer: EventTimer;
  readonly #process = (): void => {
    if (!this.connection.isOver) this.#dialler.library.ssl.SSL_handle_events(this.connection.pointer);
  };
  readonly #onClosed: () => void;
  #isScheduled = false;
  #isClosed = false;

  constructor(
    dialler: QuicDialler,
    dial: QuicDial,
    user: (connection: DialledConnection) => QuicConnectionUser,
    onClosed: () => void,
  ) {
    const { library, sockets, memory, batch } = dialler;
    const { ssl } = library;
    this.#dialler = dialler;
    this.#onClosed = onClosed;
    this.#fd = this.#openSocket(dial);
    const pointer = ssl.SSL_new(dial.context.pointer);
    if (pointer === 0) {
      sockets.libc.close(this.#fd);
      throw new QuicUnavailable(`no connection: ${library.errors()}`);
    }
    this.#pipe = new DatagramPipe(library, batch);
    ssl.SSL_set_bio(pointer, this.#pipe.inner, this.#pipe.inner);
    ssl.SSL_set_blocking_mode(pointer, 0);
    const protocols = protocolList(dial.protocol);
    ssl.SSL_set_alpn_protos(pointer, protocols, protocols.length);
    ssl.SSL_set1_initial_peer_addr(pointer, this.#name);
    this.#expect(pointer, dial);
    this.#sending = SendBatch.through(
      sockets.libc,
      this.#fd,
      { slotOctets: DATAGRAM_OCTETS, named: false, slots: SEND_SLOTS },
      { full: () => undefined, refused: (errno) => this.#refused(errno) },
    );
    const options = {
      library,
      memory,
      peer: dial.peer,
      maxStreams: () => MAX_SERVER_STREAMS,
      maxHeldForPeer: () => Number.POSITIVE_INFINITY,
      onTouched: () => this.#touch(),
    };
    this.connection = new ClientConnection(pointer, options, dial);
    this.connection.user = user(this.connection);
    this.#timer = new EventTimer(ssl, pointer, () => this.#run());
    sockets.loop.watch(this.#fd, this);
    ssl.SSL_connect(pointer);
    ssl.ERR_clear_error();
    this.#touch();
  }

  readable(): boolean {
    if (this.#isClosed) return false;
    const { received } = this.#dialler;
    let count: number;
    let rounds = MAX_ROUNDS;
    do {
      count = received.receive(this.#fd);
      for (let slot = 0; slot < count; slot++) {
        if (received.cutOff(slot)) continue;
        this.#pipe.queue(received.slots[slot] as Uint8Array, received.length(slot), this.#name, 0);
      }
      this.#pipe.deliver(this.#process);
    } while (count === received.slots.length && --rounds > 0);
    if (count < 0) this.#refused(-count);
    this.#run();
    return true;
  }

  #run(): void {
    if (this.#isClosed) return;
    this.#process();
    this.connection.poll();
    // A callback for received data may have closed everything.
    if (this.#isClosed) return;
    this.#process();
    while (this.#flush() > 0) this.#process();
    // The sent data may have ended it, too.
    if (this.connection.isOver) this.close();
    else this.#timer.set();
  }

  #flush(): number {
    const drained = this.#pipe.drain((octets, at, length) => {
      this.#sending.buffer().set(octets.subarray(at, at + length));
      this.#sending.commit(length);
    });
    this.#sending.flush();
    return drained;
  }

  #touch(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#run();
    });
  }

  /** The network reports that no server listens. */
  #refused(errno: number): void {
    if (errno === Linux.EAGAIN || errno === Linux.EINTR || !this.connection.isOpen) return;
    this.connection.break(NETWORK_FAULTS.get(errno) ?? `errno ${errno}`);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer.cancel();
    this.connection.free();
    this.#onClosed();
    this.#dialler.sockets.loop.close(this.#fd);
    this.#pipe.close();
  }

  #expect(pointer: number, { serverName, certifiedName }: QuicDial): void {
    const { ssl } = this.#dialler.library;
    if (serverName !== undefined && parseHost(serverName) === undefined)
      ssl.SSL_ctrl(pointer, C.SSL_CTRL_SET_TLSEXT_HOSTNAME, 0, serverName);
    if (certifiedName === undefined) return;
    // Names in the subject do not count (RFC 9525 section 2).
    ssl.SSL_set_hostflags(pointer, C.X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (parseHost(certifiedName) === undefined) ssl.SSL_set1_host(pointer, certifiedName);
    else ssl.X509_VERIFY_PARAM_set1_ip_asc(ssl.SSL_get0_param(pointer), certifiedName);
  }

  /** Bound to the source address, connected to the peer. */
  #openSocket({ peer, sourceAddress }: QuicDial): number {
    const { libc } = this.#dialler.sockets;
    const remote = parseHost(peer.address);
    if (remote === undefined) throw new Error(`'${peer.address}' is no address`);
    const family = remote.octets.length === 4 ? 4 : 6;
    const domain = family === 4 ? Linux.AF_INET : Linux.AF_INET6;
    const fd = libc.socket(domain, Linux.SOCK_DGRAM | Linux.SOCK_NONBLOCK | Linux.SOCK_CLOEXEC, 0);
    if (fd < 0) throw new Error(`no socket (errno ${libc.errno()})`);
    const length = family === 4 ? SocketAddress4.OCTETS : SocketAddress6.OCTETS;
    const local = sourceAddress === undefined ? undefined : parseHost(sourceAddress);
    const fail = (): never => {
      const errno = libc.errno();
      libc.close(fd);
      throw new Error(NETWORK_FAULTS.get(errno) ?? `errno ${errno}`);
    };
    if (local !== undefined) {
      writeSocketAddress(this.#name, 0, family, local.octets, 0, local.scope);
      if (libc.bind(fd, this.#name, length) < 0) fail();
    }
    writeSocketAddress(this.#name, 0, family, remote.octets, peer.port, remote.scope);
    if (libc.connect(fd, this.#name, length) < 0) fail();
    return fd;
  }
}

const SEND_SLOTS = 16;
/** Batches read in a turn of the event loop. */
const MAX_ROUNDS = 16;
/** Streams that a server may open: those of HTTP/3. */
const MAX_SERVER_STREAMS = 16;

const NETWORK_FAULTS: ReadonlyMap<number, string> = new Map([
  [1, "operation not permitted"],
  [13, "permission denied"],
  [97, "address family not supported by protocol"],
  [99, "cannot assign requested address"],
  [101, "network is unreachable"],
  [111, "connection refused"],
  [113, "no route to host"],
]);
