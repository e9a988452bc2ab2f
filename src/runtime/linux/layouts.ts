/**
 * Constants and structures of Linux on x86-64 and arm64 (with one difference), with glibc and musl. A test compares
 * them with C compilers: of both libraries on this machine, and of arm64 with glibc. Offsets and sizes are in octets;
 * all numbers are little-endian.
 */

/** The kernel's numbers, under their names in C. */
export const Linux = {
  AF_INET: 2,
  AF_INET6: 10,
  SOCK_STREAM: 1,
  SOCK_DGRAM: 2,
  SOCK_NONBLOCK: 0x800,
  SOCK_CLOEXEC: 0x80000,
  SOL_SOCKET: 1,
  SO_REUSEADDR: 2,
  SO_SNDBUF: 7,
  SO_RCVBUF: 8,
  SO_REUSEPORT: 15,
  SO_ATTACH_FILTER: 26,
  SO_RCVBUFFORCE: 33,
  IPPROTO_IP: 0,
  IP_PKTINFO: 8,
  IP_MTU_DISCOVER: 10,
  IP_PMTUDISC_WANT: 1,
  IP_PMTUDISC_DO: 2,
  IPPROTO_UDP: 17,
  IPPROTO_IPV6: 41,
  IPV6_V6ONLY: 26,
  IPV6_RECVPKTINFO: 49,
  IPV6_PKTINFO: 50,
  UDP_SEGMENT: 103,
  MSG_TRUNC: 0x20,
  MSG_DONTWAIT: 0x40,
  EINTR: 4,
  EIO: 5,
  EAGAIN: 11,
  EINVAL: 22,
  EMSGSIZE: 90,
  EOPNOTSUPP: 95,
  ENOBUFS: 105,
  EPOLLIN: 1,
  EPOLL_CTL_ADD: 1,
  EPOLL_CTL_DEL: 2,
  EPOLL_CLOEXEC: 0x80000,
} as const;

/** Names of the errors of opening a socket. */
export const ERRNO_NAMES: Readonly<Record<number, string>> = {
  1: "EPERM",
  12: "ENOMEM",
  13: "EACCES",
  22: "EINVAL",
  23: "ENFILE",
  24: "EMFILE",
  28: "ENOSPC",
  97: "EAFNOSUPPORT",
  98: "EADDRINUSE",
  99: "EADDRNOTAVAIL",
};

/**
 * `struct mmsghdr`: a `struct msghdr`, followed by the length of the datagram.
 *
 * The number of vectors is written as 8 octets, as in glibc and in the kernel. In musl it is an `int` and 4 octets of
 * padding, as POSIX wants it: the same octets, on a little-endian machine, for every number that fits. The kernel
 * reads all 8, so the padding has to be zero. The same holds for the length of the control data.
 */
export const MessageHeader = {
  OCTETS: 64,
  NAME: 0,
  NAME_LENGTH: 8,
  VECTORS: 16,
  VECTOR_COUNT: 24,
  CONTROL: 32,
  CONTROL_LENGTH: 40,
  FLAGS: 48,
  MESSAGE_LENGTH: 56,
} as const;

/** `struct iovec`. */
export const IoVector = { OCTETS: 16, BASE: 0, LENGTH: 8 } as const;

/** `struct sockaddr_in`. Family and port have the same offsets as in {@link SocketAddress6}. */
export const SocketAddress4 = { OCTETS: 16, FAMILY: 0, PORT: 2, ADDRESS: 4 } as const;

/** `struct sockaddr_in6`. */
export const SocketAddress6 = { OCTETS: 28, FAMILY: 0, PORT: 2, ADDRESS: 8, SCOPE: 24 } as const;

/** `struct cmsghdr`, followed by the control data of a datagram; `SPACE` includes padding. */
export const ControlHeader = { OCTETS: 16, LENGTH: 0, LEVEL: 8, TYPE: 12 } as const;

/** `struct in_pktinfo` behind its header: the interface, and the source address for the answer. */
export const PacketInfo4 = { SPACE: 32, INTERFACE: 16, ADDRESS: 20 } as const;

/** `struct in6_pktinfo` behind its header; an IPv4 address is mapped. */
export const PacketInfo6 = { SPACE: 40, ADDRESS: 16, INTERFACE: 32 } as const;

/**
 * The length of a segment behind its header, 2 octets: `UDP_SEGMENT` (Linux, udp(7)). `LENGTH` excludes the padding.
 */
export const SegmentLength = { SPACE: 24, LENGTH: 18, VALUE: 16 } as const;

/**
 * `struct epoll_event`, which only x86-64 packs. `DATA` has 8 octets for the caller; the first 4 hold the descriptor.
 */
export function epollEvent(arch: string): { readonly OCTETS: number; readonly DATA: number } {
  return arch === "x64" ? { OCTETS: 12, DATA: 4 } : { OCTETS: 16, DATA: 8 };
}
