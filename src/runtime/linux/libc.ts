/**
 * The few system calls that Node has no way to make: sockets with options of our choice, datagrams by the batch, and readiness of
 * many descriptors at once. They go through koffi, which is optional; without it, or on another system, there is simply no `Libc`.
 */
import type * as Koffi from "koffi";
import { isPlain, loadKoffi, RUNTIME_VARIABLE } from "../plain.ts";

export interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array, length: number): number;
  listen(fd: number, backlog: number): number;
  connect(fd: number, address: Uint8Array, length: number): number;
  /** @param length the room in `address`, 4 octets, over which its length is written */
  getsockname(fd: number, address: Uint8Array, length: Uint8Array): number;
  setsockopt(fd: number, level: number, option: number, value: Uint8Array, length: number): number;
  /** @param length the room in `value`, 4 octets, over which its length is written */
  getsockopt(fd: number, level: number, option: number, value: Uint8Array, length: Uint8Array): number;
  close(fd: number): number;
  /** @param headers an array of `struct mmsghdr` */
  recvmmsg(fd: number, headers: Uint8Array, count: number, flags: number, timeout: null): number;
  sendmmsg(fd: number, headers: Uint8Array, count: number, flags: number): number;
  epollCreate(flags: number): number;
  /** @param event a `struct epoll_event` */
  epollControl(epoll: number, operation: number, fd: number, event: Uint8Array): number;
  /** @param events an array of `struct epoll_event` */
  epollWait(epoll: number, events: Uint8Array, count: number, timeout: number): number;
  /** Why the last call failed. */
  errno(): number;
  /**
   * Where the octets lie in memory. They must belong to a buffer that is kept reachable for as long as the kernel may use the
   * address: a collected one shows as EFAULT and lost packets.
   */
  addressOf(octets: Uint8Array): number;
}

/** The libraries of this process, to take functions from. */
export type ProcessLibrary = ReturnType<typeof Koffi.load>;

/** koffi as far as we need it. */
export interface ForeignFunctions {
  readonly library: ProcessLibrary;
  errno(): number;
  /** Memory that JavaScript did not allocate. */
  view(address: number, octets: number): ArrayBuffer;
}

/** There are no system calls to be made here; the message says why, for the log. */
export class NoForeignFunctions extends Error {
  override readonly name = "NoForeignFunctions";
}

/** @throws NoForeignFunctions */
export async function loadForeignFunctions(): Promise<ForeignFunctions> {
  if (isPlain()) throw new NoForeignFunctions(`${RUNTIME_VARIABLE}=plain is set`);
  // `layouts.ts` holds for these two.
  if (process.platform !== "linux" || (process.arch !== "x64" && process.arch !== "arm64"))
    throw new NoForeignFunctions(`${process.platform} on ${process.arch} is not 64-bit Linux`);
  try {
    const koffi = await loadKoffi();
    // The C library is in the process already, whichever it is.
    return { library: koffi.load(null), errno: () => koffi.errno(), view: koffi.view };
  } catch (error) {
    // koffi is an optional dependency: not installed, or it has no binary for this system. Version 3.3 brings those for x86-64 and
    // arm64, each for glibc and for musl.
    throw new NoForeignFunctions("the package koffi cannot be loaded", { cause: error });
  }
}

/** @throws Error where the process lacks one of the functions */
export function libcOf(foreign: ForeignFunctions): Libc {
  const { library } = foreign;
  const move = library.func("uintptr_t memmove(void *, const void *, size_t)");
  return {
    socket: library.func("int socket(int, int, int)"),
    bind: library.func("int bind(int, const void *, unsigned int)"),
    listen: library.func("int listen(int, int)"),
    connect: library.func("int connect(int, const void *, unsigned int)"),
    getsockname: library.func("int getsockname(int, void *, void *)"),
    setsockopt: library.func("int setsockopt(int, int, int, const void *, unsigned int)"),
    getsockopt: library.func("int getsockopt(int, int, int, void *, void *)"),
    close: library.func("int close(int)"),
    recvmmsg: library.func("int recvmmsg(int, void *, unsigned int, int, void *)"),
    sendmmsg: library.func("int sendmmsg(int, void *, unsigned int, int)"),
    epollCreate: library.func("int epoll_create1(int)"),
    epollControl: library.func("int epoll_ctl(int, int, int, void *)"),
    epollWait: library.func("int epoll_wait(int, void *, int, int)"),
    errno: () => foreign.errno(),
    addressOf: (octets) => Number(move(octets, octets, 0)),
  };
}

/** @returns `undefined` where batches are not to be had: the plain way serves there */
export async function loadLibc(): Promise<Libc | undefined> {
  try {
    return libcOf(await loadForeignFunctions());
  } catch {
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

/** A socket option that is a number. @returns `undefined` where the system does not tell */
export function socketNumber(libc: Libc, fd: number, level: number, option: number): number | undefined {
  const octets = new Uint8Array(4);
  const length = Uint8Array.of(octets.length, 0, 0, 0);
  if (libc.getsockopt(fd, level, option, octets, length) < 0) return undefined;
  return new DataView(octets.buffer).getInt32(0, true);
}
