import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { loadLibc } from "./linux/libc.ts";

const STATUS = "/proc/self/status";
const skip =
  existsSync(STATUS) &&
  /^THP_enabled:\t1$/m.test(readFileSync(STATUS, "utf8")) &&
  (await loadLibc()) !== undefined
    ? false
    : "large pages cannot be had here, or not be switched off";

test("the whole process gets small pages from then on", { skip }, () => {
  // In a process of its own, as nothing takes it back.
  const script = `
    import { readFileSync } from "node:fs";
    import { takeSmallPages } from ${JSON.stringify(new URL("small-pages.ts", import.meta.url).href)};
    const isDone = await takeSmallPages();
    console.log(isDone, /^THP_enabled:.*$/m.exec(readFileSync("${STATUS}", "utf8"))[0]);`;
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" });
  assert.equal(output, "true THP_enabled:\t0\n");
});
