import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isBuildCurrent } from "../../bin/build-state.mjs";
import { portolanCorefile } from "./corefile.ts";
import type { Deployment, LaunchPlan, ServerKind } from "./server.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

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
 * The command line that serves a Corefile.
 * @throws Error where `src/` was changed since the build: the sources would be measured, and what it takes to read them
 */
export function portolanCommand(corefile: string): { command: string; args: readonly string[] } {
  if (!isBuildCurrent(root))
    throw new Error("src/ is newer than dist/: run `npm run build`, and measure again");
  return { command: process.execPath, args: [join(root, "bin", "portolan"), "-conf", corefile] };
}

function launch(deployment: Deployment, udp: string | undefined): LaunchPlan {
  return {
    ...portolanCommand(join(deployment.folder, "Corefile")),
    env: { PORTOLAN_UDP: udp },
    files: { Corefile: portolanCorefile(deployment) },
  };
}

function version(): string {
  const packageJson: { version: string } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return packageJson.version;
}
