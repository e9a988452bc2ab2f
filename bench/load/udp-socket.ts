/** A connected UDP socket that is polled, without Node's event loop in between: it would cost more than what is measured. */
import { ReceiveBatch, SendBatch } from "../../src/runtime/linux/datagram-batch.ts";
import { Linux } from "../../src/runtime/linux/layouts.ts";
import { type Libc, loadLibc } from "../../src/runtime/linux/libc.ts";
import { SOCKET_ADDRESS_OCTETS, writeSocketAddress } from "../../src/runtime/linux/socket-address.ts";

const SLOT_OCTETS = 4096;
const SOCKET_BUFFER_OCTETS = 4 * 1024 * 1024;

export interface PolledSocket {
  readonly sending: SendBatch;
  readonly received: ReceiveBatch;
  /** @returns how many datagrams there are in `received`, 0 for none */
  receive(): number;
  /** Sleeps until something arrives, or for so long. */
  wait(milliseconds: number): void;
  close(): void;
}

/** @throws Error where koffi has no binary for this system */
export async function connectUdp(address: Uint8Array, port: number): Promise<PolledSocket> {
  const libc = await loadLibc();
  if (libc === undefined)
    throw new Error("the UDP load generator needs 64-bit Linux and koffi (npm ci installs it)");
  const wait = await loadWait();
  const fd = openSocket(libc, address, port);
  const received = new ReceiveBatch(libc, { slotOctets: SLOT_OCTETS, named: false });
  const sending = SendBatch.through(libc, fd, { slotOctets: SLOT_OCTETS, named: false }, UNHEARD);
  return {
    sending,
    received,
    receive: () => Math.max(0, received.receive(fd)),
    wait: (milliseconds) => wait(fd, milliseconds),
    close: () => libc.close(fd),
  };
}

/** Datagrams that the kernel refuses count as lost, as their queries stay without an answer. */
const UNHEARD = { full: () => undefined, refused: () => undefined };

function openSocket(libc: Libc, address: Uint8Array, port: number): number {
  const fd = libc.socket(Linux.AF_INET, Linux.SOCK_DGRAM | Linux.SOCK_NONBLOCK | Linux.SOCK_CLOEXEC, 0);
  if (fd < 0) throw new Error(`no socket: errno ${libc.errno()}`);
  setBuffer(libc, fd, Linux.SO_RCVBUFFORCE);
  setBuffer(libc, fd, Linux.SO_SNDBUF);
  const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  const length = writeSocketAddress(name, 0, 4, address, port);
  if (libc.connect(fd, name, length) < 0) throw new Error(`cannot connect: errno ${libc.errno()}`);
  return fd;
}

/** Fails in silence where the system allows less: bursts are shorter then. */
function setBuffer(libc: Libc, fd: number, option: number): void {
  const octets = new Uint8Array(4);
  new DataView(octets.buffer).setInt32(0, SOCKET_BUFFER_OCTETS, true);
  libc.setsockopt(fd, Linux.SOL_SOCKET, option, octets, octets.length);
}

const POLLIN = 1;
const PR_SET_TIMERSLACK = 29;

/** ppoll(2), with the timer slack of this thread (50 µs unless set) turned down to a nanosecond. */
async function loadWait(): Promise<(fd: number, milliseconds: number) => void> {
  const { default: koffi } = await import("koffi");
  const library = koffi.load(null);
  const ppoll = library.func("int ppoll(void *, unsigned long, const void *, const void *)");
  library.func("int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long)")(
    PR_SET_TIMERSLACK,
    1,
    0,
    0,
    0,
  );
  // struct pollfd: the descriptor, the events asked for, the events seen. struct timespec: seconds, nanoseconds.
  const descriptorOctets = new Uint8Array(8);
  const timeoutOctets = new Uint8Array(16);
  const descriptor = new DataView(descriptorOctets.buffer);
  const timeout = new DataView(timeoutOctets.buffer);
  descriptor.setInt16(4, POLLIN, true);
  return (fd, milliseconds) => {
    descriptor.setInt32(0, fd, true);
    const nanoseconds = Math.max(0, Math.floor(milliseconds * 1e6));
    timeout.setInt32(0, Math.floor(nanoseconds / 1e9), true);
    timeout.setInt32(8, nanoseconds % 1e9, true);
    ppoll(descriptorOctets, 1, timeoutOctets, null);
  };
}
