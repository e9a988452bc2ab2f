/** Describes turns of the event loop that were too long. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { LongTurn } from "./memory-results.ts";

/** The number of reported stacks, and of functions in each. */
const STACKS = 5;
const NAMED = 4;
/** The kernel has the upper half of all addresses. */
const KERNEL = 1n << 63n;
/** Where a program lies that is loaded where its file says, as Node's is; libraries, and what V8 compiles, lie above. */
const LIBRARIES = 1n << 32n;
/** Octets of what nm(1) prints. */
const MOST_TEXT = 1 << 30;

/**
 * @param begin milliseconds since the epoch: of the load
 * @param symbols names of functions
 */
export function describeLongTurn(turn: LongTurn, begin: number, symbols: Symbols): string[] {
  const { at, processor, wall, user = 0, system = 0, faults, reads, waits, preempted, samples } = turn;
  const head = `${processor.toFixed(1)} ms on the processor (${wall.toFixed(1)} by the clock), ${((at - begin) / 1000).toFixed(1)} s from the beginning`;
  if (faults === undefined) return [head];
  const facts = `${user.toFixed(1)} ms in the program and ${system.toFixed(1)} in the kernel, ${faults} faults, ${reads} pages read, ${waits} waits, preempted ${preempted} times`;
  if (samples === undefined) return [head, `  ${facts}`];
  const places = new Map<string, number>();
  for (const line of (turn.stacks ?? "").split("\n").filter(Boolean)) {
    const [count = "", ...addresses] = line.split(" ");
    const place = placeOf(addresses, symbols);
    places.set(place, (places.get(place) ?? 0) + Number(count));
  }
  const stacks = [...places].sort(([, one], [, other]) => other - one).slice(0, STACKS);
  return [
    head,
    `  ${facts}, ${samples} samples of a millisecond`,
    ...stacks.map(([place, count]) => `    ${count} × ${place}`),
  ];
}

/** Compiled code has no names: it is summarized in one word. */
function placeOf(addresses: readonly string[], symbols: Symbols): string {
  return addresses
    .map((address) => symbols.nameOf(BigInt(`0x${address}`)))
    .filter((name, index, names) => name !== names[index - 1])
    .slice(0, NAMED)
    .join(" < ");
}

export class Symbols {
  readonly #kernel: SymbolTable;
  readonly #program: SymbolTable;

  /**
   * @param kernel the text of /proc/kallsyms (proc(5)): all addresses are 0 for an unprivileged reader
   * @param program the output of nm(1) for a program that is loaded at the addresses in its file
   */
  constructor(kernel: string, program: string) {
    this.#kernel = new SymbolTable(kernel);
    this.#program = new SymbolTable(program);
  }

  /** Of this machine's kernel and this process's program. It takes a second. */
  static read(): Symbols {
    let kernel = "";
    let program = "";
    try {
      kernel = readFileSync("/proc/kallsyms", "latin1");
      program = execFileSync("nm", ["-C", process.execPath], { encoding: "latin1", maxBuffer: MOST_TEXT });
    } catch {
      // Another system, or one without binutils: addresses are then told as they are.
    }
    return new Symbols(kernel, program);
  }

  nameOf(address: bigint): string {
    const name =
      address >= KERNEL
        ? this.#kernel.nameOf(address)
        : address < LIBRARIES
          ? this.#program.nameOf(address)
          : "compiled code or a library";
    return name ?? `0x${address.toString(16)}`;
  }
}

class SymbolTable {
  readonly #starts: bigint[] = [];
  readonly #names: string[] = [];

  constructor(text: string) {
    const symbols = [...text.matchAll(/^([0-9a-f]+) [tTwW] ([^(\n]+)/gm)]
      .map(([, address, name = ""]) => ({ start: BigInt(`0x${address}`), name: name.trim() }))
      .filter(({ start }) => start !== 0n)
      .sort((one, other) => (one.start < other.start ? -1 : 1));
    for (const { start, name } of symbols) {
      this.#starts.push(start);
      this.#names.push(name);
    }
  }

  nameOf(address: bigint): string | undefined {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#starts[middle] as bigint) <= address) low = middle + 1;
      else high = middle;
    }
    return this.#names[low - 1];
  }
}
