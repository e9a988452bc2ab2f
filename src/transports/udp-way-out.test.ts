import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { describe, test } from "node:test";
import { readU16 } from "../dns/octets.ts";
import { ReceiveBatch, SendBatch } from "../runtime/linux/datagram-batch.ts";
import { Linux } from "../runtime/linux/layouts.ts";
import { type Libc, NoForeignFunctions } from "../runtime/linux/libc.ts";
import { linuxSockets } from "../runtime/linux/linux-sockets.ts";
import { SOCKET_ADDRESS_OCTETS, writeSocketAddress } from "../runtime/linux/socket-address.ts";
import type { MessageReceiver } from "./transport.ts";
import { listenUdpBatched } from "./udp-batched.ts";

const found = await linuxSockets();
const sockets = found instanceof NoForeignFunctions ? undefined : found;

const echo: MessageReceiver = {
  receive(bytes, length, port) {
    port.buffer(length).set(bytes.subarray(0, length));
    port.send(length);
  },
};

describe("the socket that replies leave through", {
  skip: sockets === undefined ? "koffi is not available here" : false,
}, () => {
  for (const [name, host, family] of [
    ["one address", "127.0.0.1", 4],
    ["one address of IPv6", "::1", 6],
    ["the wildcard of IPv4", "0.0.0.0", 4],
    ["all addresses", "", 4],
    ["all addresses, over IPv6", "", 6],
  ] as const) {
    test(`exists while the port is not shared: ${name}`, async () => {
      assert.ok(sockets !== undefined);
      const transport = await listenUdpBatched(sockets, { host, port: 0 }, echo);
      const socket = createSocket(family === 4 ? "udp4" : "udp6");
      const answered = async (): Promise<void> => {
        const reply = once(socket, "message");
        socket.send(Uint8Array.of(1), transport.port, family === 4 ? "127.0.0.1" : "::1");
        await reply;
      };
      for (const [isShared, expected] of [
        [undefined, 2],
        [true, 1],
        [false, 2],
      ] as const) {
        if (isShared !== undefined) assert.equal(transport.share?.(isShared), true);
        assert.equal(socketsAt(transport.port), expected);
        await answered();
      }
      await transport.close();
      assert.equal(socketsAt(transport.port), 0);
      socket.close();
    });
  }

  test("answers datagrams that arrive at it before it is connected", async () => {
    assert.ok(sockets !== undefined);
    const { libc } = sockets;
    // The source of a datagram decides which of the two sockets the kernel gives it to.
    const clients = Array.from({ length: 32 }, () => new PlainClient(libc));
    const asking = (fd: number, name: Uint8Array, length: number): number => {
      for (const each of clients) each.ask(name, length);
      return libc.connect(fd, name, length);
    };
    const transport = await listenUdpBatched(
      { ...sockets, libc: { ...libc, connect: asking } },
      { host: "::1", port: 0 },
      echo,
    );
    const deadline = performance.now() + 20_000;
    let waiting = clients;
    while (waiting.length > 0 && performance.now() < deadline) {
      waiting = waiting.filter((each) => !each.isAnswered());
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(waiting.length, 0);
    await transport.close();
    for (const each of clients) each.close();
  });

  test("numbers datagrams so that no client learns how many replies the others get", async (t) => {
    assert.ok(sockets !== undefined);
    const { libc } = sockets;
    const SOCK_RAW = 3;
    const IPPROTO_UDP = 17;
    const DONT_FRAGMENT = 0x4000;
    // Only our datagrams go to these addresses, however many go to others.
    const clients = Array.from({ length: 5 }, (_, at) => {
      const octets = Uint8Array.of(127, 86, process.pid & 0xff, at + 1);
      const raw = libc.socket(Linux.AF_INET, SOCK_RAW | Linux.SOCK_NONBLOCK, IPPROTO_UDP);
      const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
      if (raw >= 0) libc.bind(raw, name, writeSocketAddress(name, 0, 4, octets, 0));
      return { address: octets.join("."), raw };
    });
    if (clients.some(({ raw }) => raw < 0)) {
      t.skip("only root may see the headers of IP");
      return;
    }
    const seen = new ReceiveBatch(libc, { slotOctets: 1_500, named: false, slots: 1 });
    const ways = ["127.0.0.1", "0.0.0.0", ""].flatMap((host) =>
      [false, true].map((reusePort) => ({ host, reusePort })),
    );
    for (const { host, reusePort } of ways)
      for (const octets of [1, 1_000]) {
        const transport = await listenUdpBatched(sockets, { host, port: 0 }, echo, { reusePort });
        const numbers: number[] = [];
        const flags: number[] = [];
        for (const { address, raw } of clients) {
          const socket = createSocket("udp4");
          socket.bind(0, address);
          const reply = once(socket, "message");
          socket.send(new Uint8Array(octets), transport.port, "127.0.0.1");
          await reply;
          socket.close();
          // Identification, and the DF bit, of those that come from our port (RFC 791 section 3.1).
          while (seen.receive(raw) === 1) {
            const [packet] = seen.slots;
            if (packet === undefined || readU16(packet, 20) !== transport.port) continue;
            numbers.push(readU16(packet, 4));
            flags.push(readU16(packet, 6));
          }
        }
        await transport.close();
        assert.deepEqual(flags, Array(5).fill(DONT_FRAGMENT));
        if (octets === 1) assert.deepEqual(numbers, [0, 0, 0, 0, 0]);
        else
          assert.ok(
            numbers.some((number, at) => at > 0 && ((number - (numbers[at - 1] ?? 0)) & 0xffff) > 16),
            `one after the other: ${numbers.join(", ")}`,
          );
      }
    for (const { raw } of clients) libc.close(raw);
  });

  test("is left out if the system does not allow it", async () => {
    assert.ok(sockets !== undefined);
    const { libc } = sockets;
    let bound = 0;
    const refusing = {
      ...sockets,
      libc: {
        ...libc,
        bind: (fd: number, name: Uint8Array, length: number) =>
          bound++ === 0 ? libc.bind(fd, name, length) : -1,
      },
    };
    const transport = await listenUdpBatched(refusing, { host: "", port: 0 }, echo);
    assert.equal(socketsAt(transport.port), 1);
    const socket = createSocket("udp4");
    const reply = once(socket, "message");
    socket.send(Uint8Array.of(1), transport.port, "127.0.0.1");
    await reply;
    await transport.close();
    socket.close();
  });
});

describe("one of two sockets at a port that is about to close", {
  skip: sockets === undefined ? "koffi is not available here" : false,
}, () => {
  for (const host of ["::1", ""]) {
    test(`leaves datagrams to the other: ${host || "all addresses"}`, async () => {
      assert.ok(sockets !== undefined);
      const { libc } = sockets;
      const closing = await listenUdpBatched(sockets, { host, port: 0 }, echo, { reusePort: true });
      const staying = await listenUdpBatched(sockets, { host, port: closing.port }, echo, {
        reusePort: true,
      });
      closing.pause();
      const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
      const length = writeSocketAddress(name, 0, 6, LOOPBACK, closing.port);
      const clients = Array.from({ length: 32 }, () => new PlainClient(libc));
      for (const each of clients) each.ask(name, length);
      const deadline = performance.now() + 20_000;
      let waiting = clients;
      while (waiting.length > 0 && performance.now() < deadline) {
        waiting = waiting.filter((each) => !each.isAnswered());
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.equal(waiting.length, 0);
      for (const each of clients) each.close();
      await Promise.all([closing.close(), staying.close()]);
    });
  }
});

const LOOPBACK = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1);

/** A socket outside of Node, so that it sends at once. */
class PlainClient {
  readonly #libc: Libc;
  readonly #fd: number;
  readonly #sending: SendBatch;
  readonly #received: ReceiveBatch;

  constructor(libc: Libc) {
    this.#libc = libc;
    this.#fd = libc.socket(Linux.AF_INET6, Linux.SOCK_DGRAM | Linux.SOCK_NONBLOCK | Linux.SOCK_CLOEXEC, 0);
    const options = { slotOctets: 64, named: 6, slots: 1 } as const;
    this.#sending = SendBatch.through(libc, this.#fd, options, {
      full: () => assert.fail("full"),
      refused: (errno) => assert.fail(`errno ${errno}`),
    });
    this.#received = new ReceiveBatch(libc, options);
  }

  ask(name: Uint8Array, length: number): void {
    this.#sending.buffer()[0] = 1;
    this.#sending.commitTo(1, name, 0, length);
    this.#sending.flush();
  }

  isAnswered(): boolean {
    return this.#received.receive(this.#fd) === 1;
  }

  close(): void {
    this.#libc.close(this.#fd);
  }
}

/** The number of UDP sockets of this process at a port. */
function socketsAt(port: number): number {
  const hexadecimal = port.toString(16).toUpperCase().padStart(4, "0");
  const own = new Set(
    readdirSync("/proc/self/fd").map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return "closed meanwhile";
      }
    }),
  );
  return ["/proc/self/net/udp", "/proc/self/net/udp6"]
    .flatMap((file) => readFileSync(file, "utf8").split("\n"))
    .map((line) => line.trim().split(/\s+/))
    .filter((words) => words[1]?.endsWith(`:${hexadecimal}`) && own.has(`socket:[${words[9]}]`)).length;
}
