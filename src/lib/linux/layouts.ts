/**
 * Numbers and structures of Linux as our octets have them: the same for x86-64 and arm64, glibc and musl. A test asks C compilers:
 * of both libraries on this machine, and of arm64 with glibc. Offsets and sizes are in octets; all numbers are little-endian.
 */

/** The kernel's numbers, under their names in C. */
export const Linux = {
  AF_INET: 2,
  AF_INET6: 10,
  SOCK_DGRAM: 2,
  SOCK_NONBLOCK: 0x800,
  SOCK_CLOEXEC: 0x80000,
  SOL_SOCKET: 1,
  SO_REUSEADDR: 2,
  SO_SNDBUF: 7,
  SO_RCVBUF: 8,
  SO_REUSEPORT: 15,
  SO_RCVBUFFORCE: 33,
  IPPROTO_IPV6: 41,
  IPV6_V6ONLY: 26,
  MSG_TRUNC: 0x20,
  MSG_DONTWAIT: 0x40,
  EINTR: 4,
  EAGAIN: 11,
  ENOBUFS: 105,
} as const;

/** Names of the errors that opening a socket brings. */
export const ERRNO_NAMES: Readonly<Record<number, string>> = {
  1: "EPERM",
  13: "EACCES",
  22: "EINVAL",
  97: "EAFNOSUPPORT",
  98: "EADDRINUSE",
  99: "EADDRNOTAVAIL",
};

/**
 * `struct mmsghdr`: a `struct msghdr`, and the length of the datagram behind it.
 *
 * The number of vectors is written as 8 octets, which it has with glibc and in the kernel. With musl it is an `int` and 4 octets of
 * padding, as POSIX wants it: the same octets, on a little-endian machine, for every number that fits. The kernel reads all 8, so the
 * padding has to be zero, and is. The length of the control data is of the same kind, and always 0 here.
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

/** `struct sockaddr_in`. Family and port lie where they lie in {@link SocketAddress6}. */
export const SocketAddress4 = { OCTETS: 16, FAMILY: 0, PORT: 2, ADDRESS: 4 } as const;

/** `struct sockaddr_in6`. */
export const SocketAddress6 = { OCTETS: 28, FAMILY: 0, PORT: 2, ADDRESS: 8, SCOPE: 24 } as const;
