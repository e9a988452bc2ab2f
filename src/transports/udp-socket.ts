/** UDP sockets made by our own system calls, with the options that Node does not offer. */
import { ERRNO_NAMES, Linux } from "../lib/linux/layouts.ts";
import { type Libc, setSocketNumber } from "../lib/linux/libc.ts";
import { parseHost, SOCKET_ADDRESS_OCTETS, writeSocketAddress } from "../lib/linux/socket-address.ts";
import { formatListenAddress, ListenError, type ListenTarget } from "./transport.ts";
import { NO_IPV6 } from "./udp.ts";

const SOCKET_BUFFER_OCTETS = 4 * 1024 * 1024;

export interface UdpSocketOptions {
  readonly reusePort?: boolean;
}

export interface UdpSocket {
  readonly fd: number;
  readonly family: 4 | 6;
}

/**
 * Opens and binds a UDP socket; an empty host means all addresses of both families, where the machine has both.
 * @throws ListenError
 */
export function openUdpSocket(libc: Libc, target: ListenTarget, options: UdpSocketOptions = {}): UdpSocket {
  const { host, port } = target;
  const open = (address: string, dualStack: boolean): { fd: number; family: 4 | 6 } => {
    const parsed = parseHost(address);
    if (parsed === undefined) throw new ListenError(formatListenAddress("udp", host, port), "EADDRNOTAVAIL");
    const family = parsed.octets.length === 4 ? 4 : 6;
    const domain = family === 4 ? Linux.AF_INET : Linux.AF_INET6;
    const fd = libc.socket(domain, Linux.SOCK_DGRAM | Linux.SOCK_NONBLOCK | Linux.SOCK_CLOEXEC, 0);
    if (fd < 0) throw listenFailure(target, libc.errno());
    if (family === 6) setSocketNumber(libc, fd, Linux.IPPROTO_IPV6, Linux.IPV6_V6ONLY, dualStack ? 0 : 1);
    if (options.reusePort === true) setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_REUSEPORT, 1);
    // The forced form goes past the system's limit where we have the right to; else as much as is allowed.
    if (setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_RCVBUFFORCE, SOCKET_BUFFER_OCTETS) < 0) {
      setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_RCVBUF, SOCKET_BUFFER_OCTETS);
    }
    setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_SNDBUF, SOCKET_BUFFER_OCTETS);
    const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
    const length = writeSocketAddress(name, 0, family, parsed.octets, port, parsed.scope);
    if (libc.bind(fd, name, length) < 0) {
      const error = listenFailure(target, libc.errno());
      libc.close(fd);
      throw error;
    }
    return { fd, family };
  };
  if (host !== "") return open(host, false);
  try {
    return open("::", true);
  } catch (error) {
    if (error instanceof ListenError && NO_IPV6.has(error.code)) return open("0.0.0.0", false);
    throw error;
  }
}

export function listenFailure({ host, port }: ListenTarget, errno: number): ListenError {
  return new ListenError(formatListenAddress("udp", host, port), ERRNO_NAMES[errno] ?? `errno ${errno}`);
}

/**
 * Lets others that ask for it bind the same address from now on, or no more. Linux looks at the option when the other one binds, so a socket
 * that was bound alone, and thereby found that the port was free, can be shared afterwards.
 */
export function setReusePort(libc: Libc, fd: number, on: boolean): boolean {
  return setSocketNumber(libc, fd, Linux.SOL_SOCKET, Linux.SO_REUSEPORT, on ? 1 : 0) === 0;
}
