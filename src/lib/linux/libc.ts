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

/** @returns `undefined` where batches are not to be had: the plain way serves there */
export async function loadLibc(): Promise<Libc | undefined> {
  // `layouts.ts` holds for these two.
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
    // koffi is an optional dependency: not installed, or it has no binary for this system. Version 3.3 brings those for x86-64 and
    // arm64, each for glibc and for musl.
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
