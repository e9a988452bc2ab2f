/** The machine of a benchmark run. */
import { existsSync } from "node:fs";
import { cpus, release, totalmem, type } from "node:os";
import { join } from "node:path";
import { isBuildCurrent } from "../bin/build-state.mjs";
import { capture } from "../scripts/lib/captured-process.ts";
import { loadLibc } from "../src/runtime/linux/libc.ts";
import type { Machine } from "./machine-facts.ts";
import { dnsperfVersion } from "./run/dnsperf.ts";

/** @param root the project's folder */
export async function describeMachine(root: string): Promise<Machine> {
  return {
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGigabytes: Math.round(totalmem() / 1e9),
    kernel: `${type()} ${release()}`,
    node: process.versions.node,
    dnsperf: await dnsperfVersion(),
    commit: await commit(root),
    program: isBuilt(root) ? "built" : "sources",
    udp: (await loadLibc()) === undefined ? "plain" : "batched",
  };
}

/** As the launcher in bin/ decides. */
function isBuilt(root: string): boolean {
  return existsSync(join(root, "dist", "cli", "main.js")) && isBuildCurrent(root);
}

async function commit(root: string): Promise<string> {
  const git = async (...args: string[]): Promise<string | undefined> => {
    try {
      const { code, output } = await capture("git", args, { cwd: root, timeout: 10_000 });
      return code === 0 ? output.trim() : undefined;
    } catch {
      return undefined;
    }
  };
  const id = await git("rev-parse", "--short=12", "HEAD");
  if (id === undefined) return "unknown";
  const changes = await git("status", "--porcelain", "--", "src", "bin", "package-lock.json");
  return changes === "" ? id : `${id} with changes that are not committed`;
}

/** Clock ticks of /proc a second. */
export async function ticksPerSecond(): Promise<number> {
  const { output } = await capture("getconf", ["CLK_TCK"], { cwd: "/", timeout: 10_000 });
  const ticks = Number(output);
  if (!(ticks > 0)) throw new Error(`getconf CLK_TCK: ${output}`);
  return ticks;
}
