/** Converts profiles of V8's inspector to samples of pprof. */

import type { HeapProfiler, Profiler } from "node:inspector";
import { Session } from "node:inspector/promises";
import type { ProfileContent, ProfileFrame, ProfileSample } from "./profile-writer.ts";

/** Microseconds between two samples of the stack, as in Go. */
const SAMPLING_INTERVAL = 10_000;

/** Mean number of allocated bytes between two samples, as in Go. */
const HEAP_INTERVAL = 512 * 1024;

/** Samples the stack until `wait` resolves. */
export async function profileCpu(wait: Promise<void>, startedAt: number): Promise<ProfileContent> {
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.setSamplingInterval", { interval: SAMPLING_INTERVAL });
    await session.post("Profiler.start");
    await wait;
    const { profile } = await session.post("Profiler.stop");
    return cpuContent(profile, startedAt);
  } finally {
    session.disconnect();
  }
}

export function cpuContent(profile: Profiler.Profile, startedAt: number): ProfileContent {
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const parents = new Map(
    profile.nodes.flatMap(({ id, children = [] }) => children.map((child): [number, number] => [child, id])),
  );
  const totals = new Map<number, { count: number; microseconds: number }>();
  for (const [index, id] of (profile.samples ?? []).entries()) {
    const total = totals.get(id) ?? { count: 0, microseconds: 0 };
    total.count++;
    total.microseconds += Math.max(0, profile.timeDeltas?.[index] ?? 0);
    totals.set(id, total);
  }
  const samples: ProfileSample[] = [];
  for (const [id, { count, microseconds }] of totals) {
    const stack: ProfileFrame[] = [];
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const frame = nodes.get(at)?.callFrame;
      // The root is not a function.
      if (frame !== undefined && parents.has(at)) stack.push(frame);
    }
    if (stack.length > 0 && stack[0]?.functionName !== "(idle)")
      samples.push({ stack, values: [count, microseconds * 1000] });
  }
  return {
    sampleTypes: [
      { type: "samples", unit: "count" },
      { type: "cpu", unit: "nanoseconds" },
    ],
    samples,
    periodType: { type: "cpu", unit: "nanoseconds" },
    period: SAMPLING_INTERVAL * 1000,
    startedAt,
    duration: (profile.endTime - profile.startTime) / 1000,
  };
}

/** Samples allocations from its start on, and reports those still in use. */
export class HeapSampler {
  readonly #session = new Session();

  async start(): Promise<void> {
    this.#session.connect();
    await this.#session.post("HeapProfiler.startSampling", { samplingInterval: HEAP_INTERVAL });
  }

  async content(startedAt: number): Promise<ProfileContent> {
    const { profile } = await this.#session.post("HeapProfiler.getSamplingProfile");
    return heapContent(profile, startedAt);
  }

  stop(): void {
    this.#session.disconnect();
  }
}

export function heapContent(profile: HeapProfiler.SamplingHeapProfile, startedAt: number): ProfileContent {
  const samples: ProfileSample[] = [];
  const visit = (node: HeapProfiler.SamplingHeapProfileNode, outer: readonly ProfileFrame[]): void => {
    const stack = node === profile.head ? outer : [node.callFrame, ...outer];
    if (node.selfSize > 0) samples.push({ stack, values: [node.selfSize] });
    for (const child of node.children) visit(child, stack);
  };
  visit(profile.head, []);
  return {
    sampleTypes: [{ type: "inuse_space", unit: "bytes" }],
    samples,
    periodType: { type: "space", unit: "bytes" },
    period: HEAP_INTERVAL,
    startedAt,
    duration: 0,
  };
}
