import assert from "node:assert/strict";
import { test } from "node:test";
import { freeingOctets } from "./received-octets.ts";

const KIBIBYTE = 1024;

function prepare() {
  const memory = { octets: 50_000 * KIBIBYTE, collected: 0, trimmed: 0 };
  const look = freeingOctets({
    buffers: () => memory.octets,
    young: () => void memory.collected++,
    trim: async () => void memory.trimmed++,
  });
  return { memory, look };
}

test("octets are freed where they pile up, and left to V8 where it frees them", () => {
  const { memory, look } = prepare();
  for (let time = 0; time < 10; time++) {
    memory.octets += time % 2 === 0 ? 300 * KIBIBYTE : -300 * KIBIBYTE;
    look();
  }
  assert.equal(memory.collected, 0);
  for (let time = 0; time < 10; time++) {
    memory.octets += 512 * KIBIBYTE;
    look();
  }
  assert.equal(memory.collected, 5);
});

test("what was freed goes back to the system after 4 looks, and then every 16", () => {
  const { memory, look } = prepare();
  const trimmed = Array.from({ length: 36 }, () => {
    look();
    return memory.trimmed;
  });
  assert.deepEqual(
    [3, 4, 19, 20, 35, 36].map((looks) => trimmed[looks - 1]),
    [0, 1, 1, 2, 2, 3],
  );
});
