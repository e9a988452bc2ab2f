/** h2spec, which tries what RFC 7540 and RFC 7541 forbid. Go installs it from the pinned modules in the folder `h2spec`. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { projectRoot } from "./portolan.ts";
import { run } from "./program.ts";

const MODULE = join(import.meta.dirname, "h2spec");
const PACKAGE = "github.com/summerwind/h2spec/cmd/h2spec";
/** It may have to fetch a dozen modules. */
const INSTALL_PATIENCE = 120_000;
/** Some 150 cases, each in a connection of its own, on a busy machine. */
const RUN_PATIENCE = 240_000;

/** Where the program is, or why it cannot be run here. */
export type H2spec = { readonly path: string } | { readonly missing: string };

/** Installs it into the project's cache, unless it is there already. */
export async function provideH2spec(): Promise<H2spec> {
  const sums = createHash("sha256")
    .update(readFileSync(join(MODULE, "go.sum")))
    .digest("hex");
  const folder = join(projectRoot, ".cache", `h2spec-${sums.slice(0, 12)}`);
  const path = join(folder, "h2spec");
  if (existsSync(path)) return { path };
  const missing = skipWithout("go");
  if (missing !== false) return { missing };
  const { code, errors } = await run("go", ["install", PACKAGE], {
    cwd: MODULE,
    // Go is to use these modules and this version of itself, whatever else is set up on the machine.
    env: { GOBIN: folder, GOFLAGS: "-mod=readonly", GOWORK: "off", GOTOOLCHAIN: "local" },
    patience: INSTALL_PATIENCE,
  });
  return code === 0 ? { path } : { missing: `go install ${PACKAGE} failed: ${errors.trim()}` };
}

export interface H2specTarget {
  readonly port: number;
  readonly path: string;
  readonly isSecure: boolean;
}

/** Runs all cases, strict ones among them. @returns the last line of the report, and the failures before it */
export async function runH2spec(
  program: string,
  { port, path, isSecure }: H2specTarget,
): Promise<{ readonly summary: string; readonly failures: string }> {
  const { output, errors } = await run(
    program,
    // Seconds that it waits for what does not come.
    [
      "--strict",
      "--timeout",
      "10",
      "--port",
      String(port),
      "--path",
      path,
      ...(isSecure ? ["--tls", "--insecure"] : []),
    ],
    { patience: RUN_PATIENCE },
  );
  const start = output.indexOf("Failures:");
  return {
    summary: output.trimEnd().split("\n").at(-1) ?? "",
    failures: start < 0 ? errors : output.slice(start),
  };
}
