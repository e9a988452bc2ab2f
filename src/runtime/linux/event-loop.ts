/**
 * Wakes this thread's event loop for descriptors that Node does not manage or read.
 *
 * An epoll descriptor holds them all, and one `uv_poll` watches it. The callback of libuv is a libuv function that
 * leaves a mark in the memory of the handle: no callback into JavaScript, so none can run where JavaScript cannot (a
 * thread that is ending) or outside Node's scopes. The mark is checked once in each turn of the loop, in an immediate
 * that does not keep the loop awake.
 */

import { isMainThread } from "node:worker_threads";
import { messageOf } from "../../lib/text/message-of.ts";
import { epollEvent, Linux } from "./layouts.ts";
import { type ForeignFunctions, type Libc, NoForeignFunctions } from "./libc.ts";

/** The owner of a descriptor to read from. */
export interface Reader {
  /**
   * Called when there is data to read, or an error: at most once in a turn of the loop, and again in a later one
   * while data is left. A reader of more than one batch checks {@link EventLoop.isTurnOver} in between.
   * @returns whether its work continues in promises: tasks for the end of the turn then wait for those
   */
  readable(): boolean;
  /**
   * Continues with data that it has read, after it called {@link EventLoop.goOnLater}. If the turn is over again
   * before it is done, it calls that again.
   * @returns as {@link readable}
   */
  goOn?(): boolean;
}

/**
 * Milliseconds after which a turn begins no further work for readers. It leaves room for a batch in progress, the
 * sends at the turn's end, and the end of a full collection. A smaller share costs throughput, as fewer queries share
 * each turn of the loop.
 */
const READING_SHARE = 0.75;
/** Readers called between two readings of the clock, which are slow on many machines. */
const READERS_A_LOOK = 4;
/** Events of one poll; further ones come in a later turn. */
const EVENTS = 64;
const UV_POLL = 8;
const UV_READABLE = 1;
/** Words of `uv_handle_t`: the user's data, and the flags. {@link EventLoop.open} verifies their places. */
const DATA_WORD = 0;
const FLAGS_WORD = 22;
const HANDLE_REFERENCED = 0x8;
/** Marks the handle as libuv's own: a loop can be closed while it exists. */
const HANDLE_INTERNAL = 0x10;
const NO_MARK = 0xffff_ffff;

export class EventLoop {
  readonly #libc: Libc;
  readonly #uv: UvFunctions;
  readonly #epoll: number;
  readonly #handle: number;
  readonly #words: Uint32Array;
  readonly #readers = new Map<number, Reader>();
  readonly #event: Uint8Array;
  readonly #events: Uint8Array;
  readonly #eventsView: DataView;
  readonly #now: () => number;
  /** Events of the last poll, and the index of the first whose reader was not called yet. */
  #eventCount = 0;
  #nextEvent = 0;
  #turnBegan = 0;
  #only: Reader | undefined;
  /** Readers that continue in the next turn with data that they have read. */
  #behind: Reader[] = [];
  #goingOn: Reader[] = [];
  #turning = false;
  #draining = false;
  #settling = false;
  #tasks: (() => void)[] = [];
  #otherTasks: (() => void)[] = [];

  /**
   * One per thread is enough; it costs nothing while nothing is watched.
   * @param now milliseconds, from any origin
   * @throws NoForeignFunctions if libuv is not as expected, or the system has no descriptor left
   */
  static open(foreign: ForeignFunctions, libc: Libc, now: () => number): EventLoop {
    return new EventLoop(foreign, libc, now);
  }

  private constructor(foreign: ForeignFunctions, libc: Libc, now: () => number) {
    this.#libc = libc;
    this.#now = now;
    this.#uv = uvFunctions(foreign);
    const octets = Number(this.#uv.handleSize(UV_POLL));
    // Not V8's memory: if a thread is terminated from outside, the loop outlives its heap.
    this.#handle = this.#uv.allocate(1, octets);
    this.#words = new Uint32Array(foreign.view(this.#handle, octets));
    const { OCTETS } = epollEvent(process.arch);
    this.#event = new Uint8Array(new ArrayBuffer(OCTETS));
    this.#events = new Uint8Array(new ArrayBuffer(OCTETS * EVENTS));
    this.#eventsView = new DataView(this.#events.buffer);
    this.#epoll = libc.epollCreate(Linux.EPOLL_CLOEXEC);
    if (this.#epoll < 0) throw new NoForeignFunctions(`epoll_create1 fails (errno ${libc.errno()})`);
    const status = this.#uv.pollInit(this.#uv.loop(), this.#handle, this.#epoll);
    if (status < 0) {
      libc.close(this.#epoll);
      throw new NoForeignFunctions(`uv_poll_init fails (${status})`);
    }
    if (!this.#isLaidOutAsExpected())
      throw new NoForeignFunctions("the handles of libuv have another layout");
    // A thread may end at any time, and its loop cannot be closed while it has handles of others.
    this.#setWord(FLAGS_WORD, this.#word(FLAGS_WORD) | HANDLE_INTERNAL);
    if (!isMainThread) {
      this.#uv.addCleanup(this.#uv.close, this.#epoll);
      this.#uv.addCleanup(this.#uv.pollStop, this.#handle);
    }
  }

  /**
   * Watches a descriptor until {@link close}, or until this thread ends.
   * @returns 0, or the number of the error
   */
  watch(fd: number, reader: Reader): number {
    if (this.#control(Linux.EPOLL_CTL_ADD, fd) < 0) return this.#libc.errno();
    if (this.#readers.size === 0) {
      const status = this.#start();
      if (status < 0) {
        this.#control(Linux.EPOLL_CTL_DEL, fd);
        return -status;
      }
    }
    if (!isMainThread) this.#uv.addCleanup(this.#uv.close, fd);
    this.#readers.set(fd, reader);
    this.#only = this.#readers.size === 1 ? reader : undefined;
    if (!this.#turning) {
      this.#turning = true;
      setImmediate(this.#turn).unref();
    }
    return 0;
  }

  /** Whether readers have used their share of this turn: the rest comes in the next one. */
  get isTurnOver(): boolean {
    return this.#now() - this.#turnBegan >= READING_SHARE;
  }

  /** Calls a reader in the next turn in any case: it has read more than it had time to handle in this one. */
  goOnLater(reader: Reader): void {
    // The loop must not block until then.
    if (this.#behind.push(reader) === 1) setImmediate(NOTHING);
  }

  /** Stops watching a descriptor. It stays open. */
  silence(fd: number): void {
    if (this.#readers.has(fd)) this.#control(Linux.EPOLL_CTL_DEL, fd);
  }

  /** Closes a watched descriptor. */
  close(fd: number): void {
    if (!this.#readers.delete(fd)) return;
    if (!isMainThread) this.#uv.removeCleanup(this.#uv.close, fd);
    // There is no copy of the descriptor, so closing it removes it from the epoll set as well.
    this.#libc.close(fd);
    this.#only = undefined;
    if (this.#readers.size === 1) for (const reader of this.#readers.values()) this.#only = reader;
    // A stopped handle does not keep the loop alive.
    if (this.#readers.size === 0) this.#uv.stopPoll(this.#handle);
  }

  /**
   * Runs a task at the end of this turn of the loop: after all readers, and all promises that they settled. The same
   * function may be passed again once it has run.
   */
  atTurnEnd(task: () => void): void {
    this.#tasks.push(task);
    if (this.#draining || this.#settling) return;
    this.#settling = true;
    setImmediate(this.#settle);
  }

  readonly #turn = (): void => {
    if (this.#readers.size === 0) {
      this.#turning = false;
      return;
    }
    setImmediate(this.#turn).unref();
    const isTold = this.#word(DATA_WORD) !== NO_MARK;
    if (!isTold && this.#behind.length === 0) return;
    this.#draining = true;
    this.#turnBegan = this.#now();
    let goesOn = false;
    let isOver = false;
    if (this.#behind.length > 0) {
      goesOn = this.#tellThoseBehind();
      isOver = this.isTurnOver;
    }
    // Events that are not handled in this turn leave their mark again in the next one.
    if (isTold && !isOver && this.#look()) goesOn = true;
    if (goesOn) queueMicrotask(this.#behindMicrotasks);
    else this.#settle();
  };

  #tellThoseBehind(): boolean {
    const readers = this.#behind;
    this.#behind = this.#goingOn;
    let goesOn = false;
    for (const reader of readers) if (reader.goOn?.() === true) goesOn = true;
    readers.length = 0;
    this.#goingOn = readers;
    return goesOn;
  }

  #look(): boolean {
    // The mark is the status that libuv passed; below zero it has stopped watching.
    const status = this.#word(DATA_WORD) | 0;
    this.#setWord(DATA_WORD, NO_MARK);
    // A failed restart is retried in the next turn: the sockets are polled nevertheless.
    if (status < 0 && this.#start() < 0) this.#setWord(DATA_WORD, status);
    return this.#only === undefined ? this.#tellReaders() : this.#only.readable();
  }

  /**
   * Calls the readers that were left over in the last turn first, so every reader has been called before any is
   * called again.
   * @returns whether promises continue the work of one of them
   */
  #tellReaders(): boolean {
    const { OCTETS, DATA } = EVENT;
    if (this.#nextEvent >= this.#eventCount) {
      this.#eventCount = this.#libc.epollWait(this.#epoll, this.#events, EVENTS, 0);
      this.#nextEvent = 0;
    }
    let goesOn = false;
    while (this.#nextEvent < this.#eventCount) {
      const index = this.#nextEvent++;
      // A reader may have been closed by another one.
      const reader = this.#readers.get(this.#eventsView.getInt32(index * OCTETS + DATA, true));
      if (reader?.readable() === true) goesOn = true;
      if (index % READERS_A_LOOK === READERS_A_LOOK - 1 && this.isTurnOver) break;
    }
    return goesOn;
  }

  /** Ticks run once no microtask is left. */
  readonly #behindMicrotasks = (): void => process.nextTick(this.#settle);

  readonly #settle = (): void => {
    this.#draining = false;
    this.#settling = false;
    const tasks = this.#tasks;
    this.#tasks = this.#otherTasks;
    for (const task of tasks) task();
    tasks.length = 0;
    this.#otherTasks = tasks;
  };

  #start(): number {
    this.#setWord(DATA_WORD, NO_MARK);
    return this.#uv.startPoll(this.#handle, UV_READABLE, this.#uv.setData);
  }

  #control(operation: number, fd: number): number {
    const view = new DataView(this.#event.buffer);
    view.setUint32(0, Linux.EPOLLIN, true);
    view.setInt32(EVENT.DATA, fd, true);
    return this.#libc.epollControl(this.#epoll, operation, fd, this.#event);
  }

  #isLaidOutAsExpected(): boolean {
    const flags = (): number => this.#word(FLAGS_WORD);
    if (flags() !== HANDLE_REFERENCED) return false;
    this.#uv.unref(this.#handle);
    if (flags() !== 0) return false;
    this.#uv.ref(this.#handle);
    this.#uv.markData(this.#handle, 0x1234);
    return flags() === HANDLE_REFERENCED && this.#word(DATA_WORD) === 0x1234;
  }

  #word(index: number): number {
    return this.#words[index] as number;
  }

  #setWord(index: number, value: number): void {
    this.#words[index] = value;
  }
}

const EVENT = epollEvent(process.arch);
const NOTHING = (): void => undefined;

/**
 * Functions of libuv and Node in this process, and the addresses of some. Addresses are numbers: user space has 47
 * bits.
 */
interface UvFunctions {
  readonly close: number;
  readonly pollStop: number;
  readonly setData: number;
  handleSize(type: number): number;
  allocate(count: number, octets: number): number;
  /** The loop of this thread: `uv_default_loop` would be that of the main thread. */
  loop(): number;
  ref(handle: number): void;
  unref(handle: number): void;
  markData(handle: number, data: number): void;
  pollInit(loop: number, handle: number, fd: number): number;
  startPoll(handle: number, events: number, callback: number): number;
  stopPoll(handle: number): number;
  /** Makes the thread call a C function with this argument when it ends, in reverse order. */
  addCleanup(call: number, argument: number): void;
  removeCleanup(call: number, argument: number): void;
}

/** @throws NoForeignFunctions */
function uvFunctions({ library }: ForeignFunctions): UvFunctions {
  try {
    const addressOf = library.func("uintptr_t dlsym(uintptr_t, const char *)");
    const address = (symbol: string): number => {
      const found: unknown = addressOf(0, symbol);
      if (typeof found !== "number" || found === 0) throw new NoForeignFunctions(symbol);
      return found;
    };
    // C++ names as all our compilers mangle them (Itanium ABI); the official binaries of Node export them for
    // add-ons.
    const isolate = library.func("_ZN2v87Isolate10GetCurrentEv", "uintptr_t", []);
    const loop = library.func("_ZN4node19GetCurrentEventLoopEPN2v87IsolateE", "uintptr_t", ["uintptr_t"]);
    const hook = ["uintptr_t", "uintptr_t", "uintptr_t"];
    const add = library.func("_ZN4node25AddEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_", "void", hook);
    const remove = library.func(
      "_ZN4node28RemoveEnvironmentCleanupHookEPN2v87IsolateEPFvPvES3_",
      "void",
      hook,
    );
    const here: unknown = isolate();
    return {
      close: address("close"),
      pollStop: address("uv_poll_stop"),
      setData: address("uv_handle_set_data"),
      handleSize: library.func("size_t uv_handle_size(int)"),
      allocate: library.func("uintptr_t calloc(size_t, size_t)"),
      loop: () => loop(here),
      ref: library.func("void uv_ref(uintptr_t)"),
      unref: library.func("void uv_unref(uintptr_t)"),
      markData: library.func("void uv_handle_set_data(uintptr_t, uintptr_t)"),
      pollInit: library.func("int uv_poll_init(uintptr_t, uintptr_t, int)"),
      startPoll: library.func("int uv_poll_start(uintptr_t, int, uintptr_t)"),
      stopPoll: library.func("int uv_poll_stop(uintptr_t)"),
      addCleanup: (call, argument) => add(here, call, argument),
      removeCleanup: (call, argument) => remove(here, call, argument),
    };
  } catch (error) {
    throw new NoForeignFunctions(`this Node does not export what is needed of libuv: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
