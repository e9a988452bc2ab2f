/**
 * System calls that Node does not offer: sockets with any option, batches of datagrams, and readiness of many
 * descriptors at once. They use koffi, an optional dependency; without it, or on another system, there is no `Libc`.
 */
import type * as Koffi from "koffi";
import { isPlain, loadKoffi, RUNTIME_VARIABLE } from "../plain.ts";

export interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array, length: number): number;
  listen(fd: number, backlog: number): number;
  connect(fd: number, address: Uint8Array, length: number): number;
  /** @param length the size of `address`, 4 octets, replaced by the address's length */
  getsockname(fd: number, address: Uint8Array, length: Uint8Array): number;
  setsockopt(fd: number, level: number, option: number, value: Uint8Array, length: number): number;
  /** @param length the size of `value`, 4 octets, replaced by the value's length */
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
  /** The error of the last call. */
  errno(): number;
  /**
   * The address of the octets in memory. Their buffer must stay reachable as long as the kernel may use the address;
   * otherwise calls fail with EFAULT and packets are lost.
   */
  addressOf(octets: Uint8Array): number;
}

/** The libraries of this process, as a source of functions. */
export type ProcessLibrary = ReturnType<typeof Koffi.load>;

/** The parts of koffi that are used here. */
export interface ForeignFunctions {
  readonly library: ProcessLibrary;
  errno(): number;
  /** Memory that JavaScript did not allocate. */
  view(address: number, octets: number): ArrayBuffer;
}

/** System calls are not available here; the message has the reason, for the log. */
export class NoForeignFunctions extends Error {
  override readonly name = "NoForeignFunctions";
}

/** @throws NoForeignFunctions */
export async function loadForeignFunctions(): Promise<ForeignFunctions> {
  if (isPlain()) throw new NoForeignFunctions(`${RUNTIME_VARIABLE}=plain is set`);
  // `layouts.ts` is valid for these two.
  if (process.platform !== "linux" || (process.arch !== "x64" && process.arch !== "arm64"))
    throw new NoForeignFunctions(`${process.platform} on ${process.arch} is not 64-bit Linux`);
  try {
    const koffi = await loadKoffi();
    // The C library is part of the process already, whichever it is.
    return { library: koffi.load(null), errno: () => koffi.errno(), view: koffi.view };
  } catch (error) {
    // koffi is an optional dependency: it is not installed, or has no binary for this system.
    throw new NoForeignFunctions("the package koffi cannot be loaded", { cause: error });
  }
}

/** @throws Error if the process lacks one of the functions */
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

/** @returns `undefined` if batches are not available: the caller uses Node's sockets then */
export async function loadLibc(): Promise<Libc | undefined> {
  try {
    return libcOf(await loadForeignFunctions());
  } catch {
    return undefined;
  }
}

/** Sets a numeric socket option. @returns a negative number if the system refuses */
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

/** Reads a numeric socket option. @returns `undefined` if the system refuses */
export function socketNumber(libc: Libc, fd: number, level: number, option: number): number | undefined {
  const octets = new Uint8Array(4);
  const length = Uint8Array.of(octets.length, 0, 0, 0);
  if (libc.getsockopt(fd, level, option, octets, length) < 0) return undefined;
  return new DataView(octets.buffer).getInt32(0, true);
}
