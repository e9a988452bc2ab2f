/** Datagrams that the kernel cuts into segments arrive as they were given, each once, whatever their lengths and whatever fails. */
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { release } from "node:os";
import { describe, test } from "node:test";
import fc from "fast-check";
import { BATCH } from "./datagram-batch.ts";
import { ownLoop } from "./fixtures/own-loop.ts";
import { Linux, MessageHeader } from "./layouts.ts";
import { type Libc, NoForeignFunctions } from "./libc.ts";
import { linuxSockets } from "./linux-sockets.ts";
import { SegmentTrial } from "./segment-trial.ts";
import { cutsSegments, SegmentedBatch } from "./segmented-batch.ts";
import { SOCKET_ADDRESS_OCTETS, writeSocketAddress } from "./socket-address.ts";

const skip = (await linuxSockets()) instanceof NoForeignFunctions ? "koffi is not available" : false;

const LOCAL = Uint8Array.of(127, 0, 0, 1);

function connectedSocket(libc: Libc, port: number): number {
  const fd = libc.socket(Linux.AF_INET, Linux.SOCK_DGRAM, 0);
  const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  assert.equal(libc.connect(fd, name, writeSocketAddress(name, 0, 4, LOCAL, port)), 0);
  return fd;
}

async function receiver(): Promise<{ socket: Socket; port: number }> {
  const socket = createSocket({ type: "udp4", recvBufferSize: 1 << 20 });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return { socket, port: socket.address().port };
}

/** As hexadecimal text, in the order of their texts: datagrams of one flush leave in another order than they were given. */
function gather(socket: Socket, count: number): Promise<string[]> {
  return new Promise((resolve) => {
    const received: string[] = [];
    const take = (message: Buffer): void => {
      if (received.push(message.toString("hex")) < count) return;
      socket.off("message", take);
      resolve(received.sort());
    };
    if (count === 0) resolve(received);
    else socket.on("message", take);
  });
}

/** Of a peer that has replied to what was cut. */
function provenTrial(): SegmentTrial {
  const trial = new SegmentTrial(() => 0);
  trial.sent(1, 2);
  trial.arrived(1);
  return trial;
}

/** The octets of a datagram tell which one it is. */
function give(batch: SegmentedBatch, lengths: readonly number[]): string[] {
  return lengths
    .map((length, number) => {
      const slot = batch.buffer();
      for (let at = 0; at < length; at++) slot[at] = (number * 31 + at) & 0xff;
      batch.commit(length);
      return Buffer.from(slot.subarray(0, length)).toString("hex");
    })
    .sort();
}

const noFailures = {
  full: () => assert.fail("full"),
  refused: (errno: number) => assert.fail(`errno ${errno}`),
};

describe("datagrams in segments", { skip }, () => {
  test("all that was given arrives, each once, and fewer messages than datagrams leave", async () => {
    const { libc } = await ownLoop();
    const { socket, port } = await receiver();
    const fd = connectedSocket(libc, port);
    let messages = 0;
    const counting: Libc = {
      ...libc,
      sendmmsg: (...parameters) => {
        messages += parameters[2];
        return libc.sendmmsg(...parameters);
      },
    };
    assert.ok(cutsSegments(libc, fd, release()), "this kernel has no UDP_SEGMENT");
    const batch = new SegmentedBatch(counting).for(fd, provenTrial(), noFailures);
    const lengths = fc.array(fc.oneof(fc.integer({ min: 12, max: 60 }), fc.integer({ min: 1, max: 512 })), {
      maxLength: BATCH + 10,
    });
    await fc.assert(
      fc.asyncProperty(lengths, async (wanted) => {
        const received = gather(socket, wanted.length);
        const given = give(batch, wanted);
        batch.flush();
        assert.ok(batch.isEmpty);
        assert.deepEqual(await received, given);
      }),
      { numRuns: 200 },
    );
    messages = 0;
    const received = gather(socket, BATCH + 2);
    const given = [...give(batch, [...Array<number>(BATCH - 1).fill(45), 30]), ...give(batch, [50, 40])];
    batch.flush();
    assert.deepEqual(await received, given.sort());
    assert.equal(messages, 2);
    socket.close();
    libc.close(fd);
  });

  test("until the peer has replied to what was cut, one message has two segments", async () => {
    const { libc } = await ownLoop();
    const { socket, port } = await receiver();
    const fd = connectedSocket(libc, port);
    let segments: number[] = [];
    const looking: Libc = {
      ...libc,
      sendmmsg: (to, headers, count, flags) => {
        const view = new DataView(headers.buffer, headers.byteOffset);
        for (let message = 0; message < count; message++)
          segments.push(view.getUint32(message * MessageHeader.OCTETS + MessageHeader.VECTOR_COUNT, true));
        return libc.sendmmsg(to, headers, count, flags);
      },
    };
    const trial = new SegmentTrial(() => 0);
    const batch = new SegmentedBatch(looking).for(fd, trial, noFailures);
    const send = async (lengths: readonly number[]): Promise<number[]> => {
      segments = [];
      const received = gather(socket, lengths.length);
      const given = give(batch, lengths);
      batch.flush();
      assert.deepEqual(await received, given);
      return segments;
    };
    assert.deepEqual(await send([45]), [1]);
    assert.deepEqual(await send([40, 60, 60, 60, 50, 45]), [2, 1, 1, 1, 1]);
    assert.deepEqual(await send([60, 60, 60]), [1, 1, 1]);
    // The first octets of the second and the third datagram, which were the longest: see `give`.
    trial.arrived((31 << 8) | 32);
    assert.deepEqual(await send([40, 60, 60, 60, 50, 45]), [4, 2]);
    socket.close();
    libc.close(fd);
  });

  for (const errno of [Linux.EIO, Linux.EINVAL, Linux.EMSGSIZE, Linux.EOPNOTSUPP])
    test(`error ${errno}: the same datagrams leave one by one, and so do all later ones`, async () => {
      const { libc } = await ownLoop();
      const { socket, port } = await receiver();
      const fd = connectedSocket(libc, port);
      let refusals = 0;
      // Sends what has no segments, up to the first message that has.
      const withoutSegments: Libc = {
        ...libc,
        sendmmsg: (to, headers, count, flags) => {
          const view = new DataView(headers.buffer, headers.byteOffset);
          let plain = 0;
          while (plain < count && hasNoControl(view, plain)) plain++;
          if (plain > 0) return libc.sendmmsg(to, headers, plain, flags);
          refusals++;
          return -1;
        },
        errno: () => errno,
      };
      const batch = new SegmentedBatch(withoutSegments).for(fd, provenTrial(), noFailures);
      // The longest leave first: two alone, and one message that ends with the last.
      const lengths = [100, 45, 45, 45, 45, 45, 45, 30];
      for (let flush = 0; flush < 2; flush++) {
        const received = gather(socket, lengths.length);
        const given = give(batch, lengths);
        batch.flush();
        assert.deepEqual(await received, given);
      }
      assert.equal(refusals, 1);
      socket.close();
      libc.close(fd);
    });

  test("an error that came back for an earlier datagram is told, and costs no datagram of those that meet it", async () => {
    const { libc } = await ownLoop();
    const gone = await receiver();
    gone.socket.close();
    await once(gone.socket, "close");
    const fd = connectedSocket(libc, gone.port);
    const refused: number[] = [];
    const failures = { ...noFailures, refused: (errno: number) => void refused.push(errno) };
    const batch = new SegmentedBatch(libc).for(fd, provenTrial(), failures);
    give(batch, [20]);
    batch.flush();
    assert.deepEqual(refused, []);
    // The port is there again, and the error of before still waits at the socket.
    const socket = createSocket("udp4");
    socket.bind(gone.port, "127.0.0.1");
    await once(socket, "listening");
    const received = gather(socket, 5);
    const given = give(batch, [20, 20, 20, 20, 20]);
    batch.flush();
    const ECONNREFUSED = 111;
    assert.deepEqual(refused, [ECONNREFUSED]);
    assert.deepEqual(await received, given);
    socket.close();
    libc.close(fd);
  });

  test("a buffer that stays full is told with the number of datagrams given up", async () => {
    const { libc } = await ownLoop();
    const full: number[] = [];
    let calls = 0;
    const stuck: Libc = {
      ...libc,
      // The first message leaves, and then nothing does.
      sendmmsg: () => (calls++ === 0 ? 1 : -1),
      errno: () => Linux.EAGAIN,
    };
    const failures = { ...noFailures, full: (count: number) => void full.push(count) };
    const batch = new SegmentedBatch(stuck).for(-1, provenTrial(), failures);
    give(batch, [45, 45, 45, 30, 20, 20]);
    batch.flush();
    assert.deepEqual(full, [2]);
  });

  test("serves one socket after the other", async () => {
    const { libc } = await ownLoop();
    const receivers = [await receiver(), await receiver()];
    const fds = receivers.map(({ port }) => connectedSocket(libc, port));
    const batch = new SegmentedBatch(libc);
    for (const lengths of [[45, 45, 45, 30], [60], [45, 45]]) {
      for (const [index, { socket }] of receivers.entries()) {
        const received = gather(socket, lengths.length);
        const given = give(batch.for(fds[index] ?? -1, provenTrial(), noFailures), lengths);
        batch.flush();
        assert.deepEqual(await received, given);
      }
    }
    for (const { socket } of receivers) socket.close();
    for (const fd of fds) libc.close(fd);
  });
});

test("kernels before 5.0 are not asked for segments, and a kernel that has none is left alone", {
  skip,
}, async () => {
  const { libc } = await ownLoop();
  const fd = libc.socket(Linux.AF_INET, Linux.SOCK_DGRAM, 0);
  assert.equal(cutsSegments(libc, fd, "4.19.0-27-amd64"), false);
  assert.equal(cutsSegments(libc, fd, ""), false);
  assert.equal(cutsSegments({ ...libc, setsockopt: () => -1 }, fd, "6.1.0"), false);
  assert.equal(cutsSegments(libc, fd, "6.1.0"), true);
  libc.close(fd);
});

function hasNoControl(headers: DataView, message: number): boolean {
  return headers.getUint32(message * MessageHeader.OCTETS + MessageHeader.CONTROL_LENGTH, true) === 0;
}
