import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";
import { EventLoop } from "./event-loop.ts";
import { ownLoop } from "./fixtures/own-loop.ts";
import { openIdle, openReader } from "./fixtures/reading-socket.ts";
import { Linux } from "./layouts.ts";
import { type ForeignFunctions, libcOf, loadForeignFunctions, NoForeignFunctions } from "./libc.ts";
import { linuxSockets } from "./linux-sockets.ts";

const found = await linuxSockets();
const skip = found instanceof NoForeignFunctions ? found.message : false;

/** Sends to a port without a pause until it is closed. */
class Flood implements Disposable {
  readonly #socket: Socket = createSocket("udp4");
  #port = 0;
  #ended = false;

  constructor() {
    this.#socket.on("error", () => undefined);
    this.#send();
  }

  aim(port: number): void {
    this.#port = port;
  }

  readonly #send = (): void => {
    if (this.#ended) return;
    if (this.#port !== 0)
      for (let n = 0; n < 20; n++) this.#socket.send(Uint8Array.of(n), this.#port, "127.0.0.1");
    setImmediate(this.#send);
  };

  [Symbol.dispose](): void {
    this.#ended = true;
    this.#socket.close();
  }
}

interface Message {
  readonly port: number;
  readonly count: number;
}

describe("the event loop", { skip }, () => {
  for (const ending of ["terminate", "throw", "exit", "close"] as const) {
    test(`threads under a flood end by ${ending}, again and again, and leave no socket`, async () => {
      using flood = new Flood();
      let port = 0;
      const before = epollDescriptors();
      for (let round = 0; round < 5; round++) {
        const worker = new Worker(new URL("./fixtures/reading-thread.ts", import.meta.url), {
          workerData: { port, ending },
        });
        const faults: unknown[] = [];
        let isEnding = false;
        worker.on("error", (error) => faults.push(error));
        await new Promise<void>((resolve) => {
          worker.on("message", (message: Message) => {
            // The same port each time: a socket that were left would make it taken.
            port = message.port;
            flood.aim(port);
            if (message.count < 5 || ending !== "terminate" || isEnding) return;
            isEnding = true;
            void worker.terminate();
          });
          worker.on("exit", () => resolve());
        });
        assert.equal(faults.length, ending === "throw" ? 1 : 0, String(faults));
      }
      assert.equal(socketsAt(port), 0, "a socket is left open");
      assert.ok(epollDescriptors() <= before, "an epoll descriptor is left open");
    });
  }

  test("tells one reader of many, and goes on when one closes others that were to be told, too", async () => {
    const told: number[] = [];
    const readers = await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        openReader(0, () => {
          told.push(index);
          // Some of these wait to be told of in the same look.
          if (told.length === 50) for (const reader of readers.slice(50)) reader.close();
        }),
      ),
    );
    const socket = createSocket("udp4");
    for (const { port } of readers) socket.send("x", port, "127.0.0.1");
    const deadline = performance.now() + 20_000;
    while (new Set(told.filter((index) => index < 50)).size < 50 && performance.now() < deadline)
      await new Promise((resolve) => setImmediate(resolve));
    assert.equal(new Set(told.filter((index) => index < 50)).size, 50);
    for (const reader of readers) reader.close();
    socket.close();
  });

  test("tells no further readers once the turn is over, and all of them before it tells one again", async () => {
    const { loop, libc, clock } = await ownLoop();
    const socket = createSocket("udp4");
    const turns: string[] = [""];
    const readers = Array.from("abcde", (name) =>
      // What has arrived is never read, so there is always something.
      openIdle({ libc, loop }, () => {
        turns[turns.length - 1] += name;
        clock.now += 1;
      }),
    );
    for (const { port } of readers) socket.send("x", port, "127.0.0.1");
    const deadline = performance.now() + 20_000;
    while (turns.join("").length < 40 && performance.now() < deadline) {
      await new Promise((resolve) => setImmediate(resolve));
      turns.push("");
    }
    for (const reader of readers) reader.close();
    socket.close();
    // It looks at the clock at each fourth one, and for others when it has told all whom it found: the last of them alone.
    for (const turn of turns) assert.ok(turn.length <= 4, turns.join(" "));
    const last = turns.join("").slice(-10);
    assert.equal(last.slice(0, 5), last.slice(5));
    assert.equal(new Set(last).size, 5);
  });

  test("runs tasks at the end of a turn behind the promises that readers settle", async () => {
    assert.ok(!(found instanceof NoForeignFunctions));
    const { loop } = found;
    const order: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const reader = await openReader(0, () => {
      loop.atTurnEnd(() => {
        order.push("task");
        resolve();
      });
      // As deep as promises may hang on each other.
      let chain = Promise.resolve();
      for (let n = 0; n < 10; n++) chain = chain.then(() => void order.push("promise"));
      setImmediate(() => order.push("next turn"));
    });
    const socket = createSocket("udp4");
    socket.send("x", reader.port, "127.0.0.1");
    await promise;
    assert.deepEqual(order, [...Array.from({ length: 10 }, () => "promise"), "task"]);
    reader.close();
    socket.close();
  });

  test("a descriptor that cannot be watched is an error number", () => {
    assert.ok(!(found instanceof NoForeignFunctions));
    const reader = { readable: () => assert.fail("nothing to read") };
    assert.equal(found.loop.watch(1_000_000, reader), 9);
    // Closing a descriptor that was never watched does nothing: least of all close another owner's descriptor.
    found.loop.close(0);
    assert.equal(found.libc.epollControl(0, Linux.EPOLL_CTL_DEL, 0, new Uint8Array(16)) < 0, true);
  });

  test("a function that is missing is a reason, and no fault", async () => {
    const foreign = await loadForeignFunctions();
    for (const symbol of ["uv_poll_init", "_ZN4node19GetCurrentEventLoopEPN2v87IsolateE"]) {
      const library = {
        func: (name: string, result: string | undefined, types: string[]) => {
          const without = name.replace(symbol, "missing");
          return result === undefined
            ? foreign.library.func(without)
            : foreign.library.func(without, result, types);
        },
      };
      const lacking = { ...foreign, library } as unknown as ForeignFunctions;
      assert.throws(() => EventLoop.open(lacking, libcOf(foreign), () => 0), NoForeignFunctions);
    }
  });
});

/** Other kinds of descriptors may belong to other tests of this process. */
function epollDescriptors(): number {
  return readdirSync("/proc/self/fd").filter((fd) => linkOf(fd) === "anon_inode:[eventpoll]").length;
}

function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    // It is closed by now.
    return "";
  }
}

/** UDP sockets over IPv4 at a port. */
function socketsAt(port: number): number {
  const place = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return readFileSync("/proc/self/net/udp", "utf8")
    .split("\n")
    .filter((line) => line.trim().split(/\s+/)[1]?.endsWith(place)).length;
}
