/** UDP sockets made by our own system calls, with options that Node does not offer. */

import { isWildcardHost } from "../lib/net/listen-address.ts";
import { ERRNO_NAMES, Linux, SocketAddress4, SocketAddress6 } from "../runtime/linux/layouts.ts";
import { type Libc, setSocketNumber } from "../runtime/linux/libc.ts";
import {
  parseHost,
  readAddressOctets,
  readPort,
  SOCKET_ADDRESS_OCTETS,
  writeSocketAddress,
} from "../runtime/linux/socket-address.ts";
import { WayOut } from "../runtime/linux/way-out.ts";
import { formatListenAddress, ListenError, type ListenTarget } from "./transport.ts";
import { NO_IPV6 } from "./udp.ts";

const SOCKET_BUFFER_OCTETS = 4 * 1024 * 1024;

export interface UdpSocketOptions {
  readonly reusePort?: boolean;
}

export interface UdpSocket {
  readonly fd: number;
  readonly family: 4 | 6;
  /** Whether an IPv6 socket also receives IPv4. */
  readonly dualStack: boolean;
}

/**
 * Opens and binds a UDP socket.
 * @throws ListenError
 */
export function openUdpSocket(libc: Libc, target: ListenTarget, options: UdpSocketOptions = {}): UdpSocket {
  const { host, port } = target;
  const open = (address: string, dualStack: boolean): UdpSocket => {
    const parsed = parseHost(address);
    if (parsed === undefined) throw new ListenError(formatListenAddress("udp", host, port), "EADDRNOTAVAIL");
    const family = parsed.octets.length === 4 ? 4 : 6;
    const fd = makeSocket(libc, family, dualStack);
    if (fd < 0) throw listenFailure(target, libc.errno());
    if (options.reusePort === true) setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_REUSEPORT, 1);
    // The FORCE variant exceeds the system's limit if we have the privilege; else the limit applies.
    if (setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_RCVBUFFORCE, SOCKET_BUFFER_OCTETS) < 0) {
      setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_RCVBUF, SOCKET_BUFFER_OCTETS);
    }
    const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
    const length = writeSocketAddress(name, 0, family, parsed.octets, port, parsed.scope);
    if (libc.bind(fd, name, length) < 0) {
      const error = listenFailure(target, libc.errno());
      libc.close(fd);
      throw error;
    }
    return { fd, family, dualStack };
  };
  if (!isWildcardHost(host)) return open(host, false);
  try {
    return open("::", true);
  } catch (error) {
    if (error instanceof ListenError && NO_IPV6.has(error.code)) return open("0.0.0.0", false);
    throw error;
  }
}

export function takesIpv4({ family, dualStack }: UdpSocket): boolean {
  return family === 4 || dualStack;
}

/**
 * Opens a second socket at the address of one that is bound alone: replies leave through it, and nothing arrives at it. The kernel
 * calls the watchers of a socket each time a datagram has left it, which is costly for a socket in epoll. Nothing watches this one.
 * An IPv6 socket is connected to its own address, so that the kernel delivers nothing else to it. Datagrams that arrive before that
 * must be read from it. A connected IPv4 socket would number all its datagrams in sequence, and so reveal to every client how many
 * replies the others get (RFC 7739 describes this for IPv6). For IPv4, therefore, an IPv6 socket is bound to the mapped address: of
 * the two, the kernel prefers the IPv4 socket.
 * @param name the socket address of the other one, as from `getsockname`
 * @returns `undefined` if the system does not allow it
 */
export function openWayOut(libc: Libc, socket: UdpSocket, name: Uint8Array): WayOut | undefined {
  const { fd, family } = socket;
  if (!setReusePort(libc, fd, true)) return undefined;
  const wayOut = makeSocket(libc, 6, takesIpv4(socket));
  const isOpen = wayOut >= 0 && setReusePort(libc, wayOut, true) && bindWayOut(libc, wayOut, name, family);
  setReusePort(libc, fd, false);
  if (isOpen) {
    setReusePort(libc, wayOut, false);
    // A spoofer may use this address as its source: the smallest buffer is enough for such datagrams.
    setSocketNumber(libc, wayOut, Linux.SOL_SOCKET, Linux.SO_RCVBUF, 0);
    return new WayOut(libc, wayOut, takesIpv4(socket));
  }
  if (wayOut >= 0) libc.close(wayOut);
  return undefined;
}

function bindWayOut(libc: Libc, wayOut: number, name: Uint8Array, family: 4 | 6): boolean {
  if (family === 6)
    return libc.bind(wayOut, name, name.length) === 0 && connectToItself(libc, wayOut, name, family);
  const mapped = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  // Four octets become the mapped address.
  const length = writeSocketAddress(mapped, 0, 6, readAddressOctets(name, 0), readPort(name, 0));
  return libc.bind(wayOut, mapped, length) === 0;
}

/**
 * Connects a socket to its own address, with the loopback address for the wildcard: it receives no datagrams from then on. A
 * wildcard socket must set the source address of each datagram.
 */
export function connectToItself(libc: Libc, fd: number, name: Uint8Array, family: 4 | 6): boolean {
  const octets = readAddressOctets(name, 0);
  const own = name.slice();
  const length = family === 4 ? SocketAddress4.OCTETS : SocketAddress6.OCTETS;
  if (octets.every((octet) => octet === 0))
    writeSocketAddress(own, 0, family, family === 4 ? LOOPBACK_4 : LOOPBACK_6, readPort(name, 0));
  return libc.connect(fd, own, length) === 0;
}

const LOOPBACK_4 = Uint8Array.of(127, 0, 0, 1);

const LOOPBACK_6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);

/** @returns a negative value if the system refuses */
function makeSocket(libc: Libc, family: 4 | 6, dualStack: boolean): number {
  const domain = family === 4 ? Linux.AF_INET : Linux.AF_INET6;
  const fd = libc.socket(domain, Linux.SOCK_DGRAM | Linux.SOCK_NONBLOCK | Linux.SOCK_CLOEXEC, 0);
  if (fd < 0) return fd;
  if (family === 6) setSocketNumber(libc, fd, Linux.IPPROTO_IPV6, Linux.IPV6_V6ONLY, dualStack ? 0 : 1);
  setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_SNDBUF, SOCKET_BUFFER_OCTETS);
  return fd;
}

export function listenFailure({ host, port }: ListenTarget, errno: number): ListenError {
  return new ListenError(formatListenAddress("udp", host, port), ERRNO_NAMES[errno] ?? `errno ${errno}`);
}

/**
 * Sets or clears SO_REUSEPORT. Linux checks the option when another socket binds, so a socket that was bound alone, and thereby
 * proved that the port was free, can be shared afterwards.
 */
export function setReusePort(libc: Libc, fd: number, on: boolean): boolean {
  return setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_REUSEPORT, on ? 1 : 0) === 0;
}
