/** Listening TCP sockets made by our own system calls, so that they can start to share their port while they are open. */

import { isWildcardHost } from "../lib/net/listen-address.ts";
import { ERRNO_NAMES, Linux } from "../runtime/linux/layouts.ts";
import { type Libc, loadLibc, setSocketNumber } from "../runtime/linux/libc.ts";
import { parseHost, SOCKET_ADDRESS_OCTETS, writeSocketAddress } from "../runtime/linux/socket-address.ts";
import { formatListenAddress, ListenError, type ListenTarget } from "./transport.ts";
import { NO_IPV6 } from "./udp.ts";

/** A bound socket, for `listen({ fd })`, which then owns it. */
export interface TcpSocket {
  readonly fd: number;
  /**
   * Sets or clears SO_REUSEPORT. Linux checks the option when another socket binds, so a socket that was bound alone, and thereby
   * proved that the port was free, can be shared afterwards.
   */
  share(on: boolean): boolean;
  /**
   * Makes the system drop new SYNs, which clients resend after a second: connections in the accept queue of a closed socket would
   * be reset. Handshakes in progress still complete.
   */
  holdBack(): void;
}

/**
 * @returns `undefined` if the system calls are not available, so that Node's own socket has to do
 * @throws ListenError
 */
export type OpenTcpSocket = (
  target: ListenTarget,
  options: { readonly reusePort: boolean },
) => TcpSocket | undefined;

/** Buffer sizes of a connection for setsockopt(2); Linux doubles them for its own needs. */
export interface SocketBuffers {
  /** Of received data. */
  readonly receive: number;
  /** Of data that the client has not acknowledged. */
  readonly send: number;
}

/** Leaves sockets to Node. */
export const withoutSystemCalls: OpenTcpSocket = () => undefined;

/**
 * The way of this system.
 * @param buffers of each connection; default: the system's, which grow to megabytes
 */
export async function tcpSockets(buffers?: SocketBuffers): Promise<OpenTcpSocket> {
  const libc = await loadLibc();
  if (libc === undefined) return withoutSystemCalls;
  return (target, options) => openTcpSocket(libc, target, { ...options, buffers });
}

interface SocketOptions {
  readonly reusePort: boolean;
  readonly buffers: SocketBuffers | undefined;
}

function openTcpSocket(libc: Libc, target: ListenTarget, options: SocketOptions): TcpSocket {
  const { host } = target;
  if (!isWildcardHost(host)) return bindTcpSocket(libc, target, host, options);
  try {
    return bindTcpSocket(libc, target, "::", options);
  } catch (error) {
    if (!(error instanceof ListenError && NO_IPV6.has(error.code))) throw error;
    return bindTcpSocket(libc, target, "0.0.0.0", options);
  }
}

function bindTcpSocket(
  libc: Libc,
  target: ListenTarget,
  address: string,
  { reusePort, buffers }: SocketOptions,
): TcpSocket {
  const failure = (): ListenError => {
    const errno = libc.errno();
    const name = ERRNO_NAMES[errno] ?? `errno ${errno}`;
    return new ListenError(formatListenAddress("tcp", target.host, target.port), name);
  };
  const parsed = parseHost(address);
  if (parsed === undefined)
    throw new ListenError(formatListenAddress("tcp", target.host, target.port), "EADDRNOTAVAIL");
  const family = parsed.octets.length === 4 ? 4 : 6;
  const domain = family === 4 ? Linux.AF_INET : Linux.AF_INET6;
  const fd = libc.socket(domain, Linux.SOCK_STREAM | Linux.SOCK_NONBLOCK | Linux.SOCK_CLOEXEC, 0);
  if (fd < 0) throw failure();
  if (family === 6)
    setSocketNumber(libc, fd, Linux.IPPROTO_IPV6, Linux.IPV6_V6ONLY, isWildcardHost(target.host) ? 0 : 1);
  // Connections of a previous process in TIME_WAIT are no reason to refuse.
  setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_REUSEADDR, 1);
  const share = (on: boolean): boolean =>
    setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_REUSEPORT, on ? 1 : 0) === 0;
  if (reusePort) share(true);
  // Accepted connections inherit these from the listening socket.
  if (buffers !== undefined) {
    setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_RCVBUF, buffers.receive);
    setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_SNDBUF, buffers.send);
  }
  const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  const length = writeSocketAddress(name, 0, family, parsed.octets, target.port, parsed.scope);
  if (libc.bind(fd, name, length) < 0) {
    const error = failure();
    libc.close(fd);
    throw error;
  }
  return { fd, share, holdBack: () => holdBack(libc, fd) };
}

/** A backlog of 0 still accepts one connection, so SYNs are dropped by a filter. */
function holdBack(libc: Libc, fd: number): void {
  // struct sock_fprog: the number of instructions, and a pointer to them. The kernel copies them.
  const program = new Uint8Array(16);
  const view = new DataView(program.buffer);
  view.setUint16(0, DROP_BEGINNINGS.length / FILTER_INSTRUCTION_OCTETS, true);
  view.setBigUint64(8, BigInt(libc.addressOf(DROP_BEGINNINGS)), true);
  if (libc.setsockopt(fd, Linux.SOL_SOCKET, Linux.SO_ATTACH_FILTER, program, program.length) < 0)
    libc.listen(fd, 0);
}

const FILTER_INSTRUCTION_OCTETS = 8;

/** Classic BPF over a TCP segment: drops segments with SYN and without ACK. */
const DROP_BEGINNINGS = filterProgram([
  // A = octet 13, the flags
  [0x30, 0, 0, 13],
  // A &= SYN | ACK
  [0x54, 0, 0, 0x12],
  // skip the next one unless A is SYN
  [0x15, 0, 1, 0x02],
  // drop
  [0x06, 0, 0, 0],
  // accept all of it
  [0x06, 0, 0, 0x7fff_ffff],
]);

/** @param instructions code, jump if true, jump if false, operand */
function filterProgram(instructions: readonly (readonly [number, number, number, number])[]): Uint8Array {
  const octets = new Uint8Array(instructions.length * FILTER_INSTRUCTION_OCTETS);
  const view = new DataView(octets.buffer);
  for (const [index, [code, whenTrue, whenFalse, operand]] of instructions.entries()) {
    const at = index * FILTER_INSTRUCTION_OCTETS;
    view.setUint16(at, code, true);
    view.setUint8(at + 2, whenTrue);
    view.setUint8(at + 3, whenFalse);
    view.setUint32(at + 4, operand, true);
  }
  return octets;
}
