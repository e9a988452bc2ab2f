/** Listening TCP sockets made by our own system calls, so that they can let others in on their port while they are open. */

import { isWildcardHost } from "../lib/net/listen-address.ts";
import { ERRNO_NAMES, Linux } from "../runtime/linux/layouts.ts";
import { type Libc, loadLibc, setSocketNumber } from "../runtime/linux/libc.ts";
import { parseHost, SOCKET_ADDRESS_OCTETS, writeSocketAddress } from "../runtime/linux/socket-address.ts";
import { formatListenAddress, ListenError, type ListenTarget } from "./transport.ts";
import { NO_IPV6 } from "./udp.ts";

/** A bound socket, for `listen({ fd })`, whose owner closes it. */
export interface TcpSocket {
  readonly fd: number;
  /**
   * Lets sockets of this user that ask for it listen on an overlapping address from now on, or no more. Linux looks at the option when
   * the other one binds, so a socket that was bound alone, and thereby found that the port was free, can be shared afterwards.
   */
  share(on: boolean): boolean;
  /**
   * Has the system hold new connections back, which their clients try again after a second: whoever waits to be accepted when a socket is
   * closed is reset. Those that have begun still come.
   */
  holdBack(): void;
}

/**
 * @returns `undefined` where the system has no such way, and Node's own has to do
 * @throws ListenError
 */
export type OpenTcpSocket = (
  target: ListenTarget,
  options: { readonly reusePort: boolean },
) => TcpSocket | undefined;

/** How much the system may hold for a connection, as setsockopt(2) takes it: Linux makes it twice as much, for what it needs itself. */
export interface SocketBuffers {
  /** Of what has come. */
  readonly receive: number;
  /** Of what the client has not acknowledged. */
  readonly send: number;
}

/** Leaves sockets to Node. */
export const withoutSystemCalls: OpenTcpSocket = () => undefined;

/**
 * The way of this system.
 * @param buffers of each connection; the system's own choice, which grows to megabytes, unless given
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
  // Connections of a former process that are still being closed are no reason to refuse.
  setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_REUSEADDR, 1);
  const share = (on: boolean): boolean =>
    setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_REUSEPORT, on ? 1 : 0) === 0;
  if (reusePort) share(true);
  // Connections take these from the socket that accepts them.
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

/** A queue of no length still holds one connection, so the first segment of new ones is dropped before it comes to that. */
function holdBack(libc: Libc, fd: number): void {
  // struct sock_fprog: the number of instructions, and where they are. The kernel copies them.
  const program = new Uint8Array(16);
  const view = new DataView(program.buffer);
  view.setUint16(0, DROP_BEGINNINGS.length / FILTER_INSTRUCTION_OCTETS, true);
  view.setBigUint64(8, BigInt(libc.addressOf(DROP_BEGINNINGS)), true);
  if (libc.setsockopt(fd, Linux.SOL_SOCKET, Linux.SO_ATTACH_FILTER, program, program.length) < 0)
    libc.listen(fd, 0);
}

const FILTER_INSTRUCTION_OCTETS = 8;

/** Classic BPF over a TCP segment: drops one whose flags have SYN and not ACK. */
const DROP_BEGINNINGS = filterProgram([
  // A = octet 13, the flags
  [0x30, 0, 0, 13],
  // A &= SYN | ACK
  [0x54, 0, 0, 0x12],
  // past the next one unless A is SYN
  [0x15, 0, 1, 0x02],
  // drop
  [0x06, 0, 0, 0],
  // take it whole
  [0x06, 0, 0, 0x7fff_ffff],
]);

/** @param instructions code, distance to jump where it holds and where not, operand */
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
