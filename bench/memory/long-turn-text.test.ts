import assert from "node:assert/strict";
import { test } from "node:test";
import { describeLongTurn, Symbols } from "./long-turn-text.ts";

const SYMBOLS = new Symbols(
  `ffffffff81000200 T do_syscall_64
ffffffff81000100 t finish_task_switch.isra.0
0000000000000000 T hidden
ffffffff81000300 d some_data
`,
  `0000000000402000 T node::Start(int, char**)
0000000000403000 t v8::internal::Heap::CollectGarbage(v8::internal::AllocationSpace)
`,
);

test("addresses have the name of the function before them", () => {
  assert.equal(SYMBOLS.nameOf(0xffff_ffff_8100_0100n), "finish_task_switch.isra.0");
  assert.equal(SYMBOLS.nameOf(0xffff_ffff_8100_01ffn), "finish_task_switch.isra.0");
  assert.equal(SYMBOLS.nameOf(0xffff_ffff_8100_0234n), "do_syscall_64");
  assert.equal(SYMBOLS.nameOf(0xffff_ffff_8100_0000n), "0xffffffff81000000");
  assert.equal(SYMBOLS.nameOf(0x40_2010n), "node::Start");
  assert.equal(SYMBOLS.nameOf(0x40_0000n), "0x400000");
  assert.equal(SYMBOLS.nameOf(0x7f34_a358_d654n), "compiled code or a library");
});

test("a long turn with all that is known of it", () => {
  const turn = {
    ...{ at: 12_500, processor: 36.21, wall: 36.24, user: 1.4, system: 34.8 },
    ...{ faults: 3, reads: 0, waits: 0, preempted: 8, samples: 12 },
    stacks:
      "2 403012\n7 ffffffff81000110 ffffffff81000210 402000\n3 ffffffff81000118 ffffffff81000210 402008\n",
  };
  assert.deepEqual(describeLongTurn(turn, 10_000, SYMBOLS), [
    "36.2 ms on the processor (36.2 by the clock), 2.5 s from the beginning",
    "  1.4 ms in the program and 34.8 in the kernel, 3 faults, 0 pages read, 0 waits, preempted 8 times, 12 samples of a millisecond",
    "    10 × finish_task_switch.isra.0 < do_syscall_64 < node::Start",
    "    2 × v8::internal::Heap::CollectGarbage",
  ]);
});

test("a long turn of which only the times are known", () => {
  assert.deepEqual(describeLongTurn({ at: 12_500, processor: 8, wall: 9 }, 10_000, SYMBOLS), [
    "8.0 ms on the processor (9.0 by the clock), 2.5 s from the beginning",
  ]);
});
