/**
 * The few system calls that Node has no way to make: sockets with options of our choice, and datagrams by the batch.
 * They go through koffi, which is optional; without it, or on another system, there is simply no `Libc`.
 */

export interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array, length: number): number;
  connect(fd: number, address: Uint8Array, length: number): number;
  setsockopt(fd: number, level: number, option: number, value: Uint8Array, length: number): number;
  close(fd: number): number;
  /** @param headers an array of `struct mmsghdr` */
  recvmmsg(fd: number, headers: Uint8Array, count: number, flags: number, timeout: null): number;
  sendmmsg(fd: number, headers: Uint8Array, count: number, flags: number): number;
  /** Why the last call failed. */
  errno(): number;
  /**
   * Where the octets lie in memory. They must belong to a buffer that is kept reachable for as long as the kernel may use the
   * address: a collected one shows as EFAULT and lost packets.
   */
  addressOf(octets: Uint8Array): number;
}

/** Numbers of the Linux interface, the same for x86-64 and arm64, glibc and musl. */
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

/** @returns `undefined` where batches are not to be had: the plain way serves there */
export async function loadLibc(): Promise<Libc | undefined> {
  // The layouts that `datagram-headers.ts` writes are those of 64-bit little-endian Linux.
  if (process.platform !== "linux" || (process.arch !== "x64" && process.arch !== "arm64")) return undefined;
  try {
    const { default: koffi } = await import("koffi");
    // The C library is in the process already, whichever it is.
    const library = koffi.load(null);
    const move = library.func("uintptr_t memmove(void *, const void *, size_t)");
    return {
      socket: library.func("int socket(int, int, int)"),
      bind: library.func("int bind(int, const void *, unsigned int)"),
      connect: library.func("int connect(int, const void *, unsigned int)"),
      setsockopt: library.func("int setsockopt(int, int, int, const void *, unsigned int)"),
      close: library.func("int close(int)"),
      recvmmsg: library.func("int recvmmsg(int, void *, unsigned int, int, void *)"),
      sendmmsg: library.func("int sendmmsg(int, void *, unsigned int, int)"),
      errno: () => koffi.errno(),
      addressOf: (octets) => Number(move(octets, octets, 0)),
    };
  } catch {
    // koffi is an optional dependency: not installed, or it has no binary for this system.
    return undefined;
  }
}

/** Sets a socket option that is a number. @returns negative where the system refuses */
export function setSocketNumber(
  libc: Libc,
  fd: number,
  level: number,
  option: number,
  value: number,
): number {
  const octets = new Uint8Array(4);
  new DataView(octets.buffer).setInt32(0, value, true);
  return libc.setsockopt(fd, level, option, octets, octets.length);
}
