/**
 * How long `portolan check` takes for a Corefile of 2,000 lines, from the start of the program to its exit.
 * Run with `npm run build && node bench/in-process/check.ts`; the machine should have nothing else to do.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const RUNS = 20;
const BLOCKS = 125;
const launcher = fileURLToPath(new URL("../../bin/portolan", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "portolan-check-"));
try {
  const large = join(folder, "large");
  const small = join(folder, "small");
  writeFileSync(large, Array.from({ length: BLOCKS }, (_, index) => serverBlock(index)).join(""));
  writeFileSync(small, serverBlock(0));
  report("node, nothing to do", ["-e", "0"]);
  report("portolan check, one server block", [launcher, "check", small]);
  report(`portolan check, ${16 * BLOCKS} lines`, [launcher, "check", large]);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function report(what: string, args: readonly string[]): void {
  const times = Array.from({ length: RUNS }, () => {
    const begun = performance.now();
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    if (status !== 0) throw new Error(`${what}: exit code ${status}\n${stderr}`);
    return performance.now() - begun;
  }).sort((one, other) => one - other);
  const [fastest = 0] = times;
  const median = times[RUNS / 2] ?? 0;
  console.log(
    `${what.padEnd(34)} median ${median.toFixed(0).padStart(4)} ms, fastest ${fastest.toFixed(0)} ms`,
  );
}

/** Sixteen lines. */
function serverBlock(index: number): string {
  return `zone${index}.example:1053 {
    errors
    log . combined {
        class denial error
    }
    cache 30 {
        success 9984 30
        denial 9984 5
    }
    hosts {
        192.0.2.1 host.zone${index}.example
        fallthrough
    }
    forward . 192.0.2.53
}

`;
}
