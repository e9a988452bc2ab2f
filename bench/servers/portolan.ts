import { cpSync, readFileSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { BUILD_STAMP, isBuildCurrent } from "../../bin/build-state.mjs";
import { portolanCorefile } from "./corefile.ts";
import type { Deployment, LaunchPlan, ServerKind } from "./server.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Below the packages that it needs. */
const published = join(root, ".cache", "published");
/** The parts of the package. */
const PARTS = ["bin", "package.json", "dist"];

export const PORTOLAN: ServerKind = {
  name: "portolan",
  about: "Portolan as it starts by itself",
  speaksTcp: true,
  speaksTls: true,
  speaksQuic: true,
  isEcho: false,
  prepare: async () => version(),
  launch: (deployment) => launch(deployment, undefined),
};

/** The same program with one callback a datagram, as it runs where there is no koffi. */
export const PORTOLAN_DGRAM: ServerKind = {
  name: "portolan-dgram",
  about: "Portolan with PORTOLAN_UDP=dgram",
  // It differs in UDP alone.
  speaksTcp: false,
  speaksTls: false,
  speaksQuic: false,
  isEcho: false,
  prepare: async () => version(),
  launch: (deployment) => launch(deployment, "dgram"),
};

/**
 * The command line that serves a Corefile, of the program as it is published: beside its sources it would compare their times with those of the
 * build at each start, for 15 to 20 ms.
 * @throws Error where `src/` was changed since the build: the sources would be measured, and what it takes to read them
 */
export function portolanCommand(corefile: string): { command: string; args: readonly string[] } {
  if (!isBuildCurrent(root))
    throw new Error("src/ is newer than dist/: run `npm run build`, and measure again");
  if (builtAt(published) !== builtAt(root)) {
    rmSync(published, { recursive: true, force: true });
    for (const part of PARTS)
      cpSync(join(root, part), join(published, part), { recursive: true, preserveTimestamps: true });
  }
  return { command: process.execPath, args: [join(published, "bin", "portolan"), "-conf", corefile] };
}

function launch(deployment: Deployment, udp: string | undefined): LaunchPlan {
  return {
    ...portolanCommand(join(deployment.folder, "Corefile")),
    env: { PORTOLAN_UDP: udp },
    files: { Corefile: portolanCorefile(deployment) },
  };
}

function builtAt(folder: string): number | undefined {
  return statSync(join(folder, BUILD_STAMP), { throwIfNoEntry: false })?.mtimeMs;
}

function version(): string {
  const packageJson: { version: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return packageJson.version;
}
