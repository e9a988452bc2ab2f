import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { capture } from "../../scripts/lib/captured-process.ts";
import { type ServerKind, ServerUnavailable } from "./server.ts";

const source = join(dirname(dirname(fileURLToPath(import.meta.url))), "floor.c");

/** The C echo: what the kernel alone costs. */
export function floorServer(): ServerKind {
  let program = "";
  return {
    name: "floor",
    about: "recvmmsg/sendmmsg echo in C: the kernel's share",
    speaksTcp: false,
    speaksTls: false,
    speaksQuic: false,
    isEcho: true,
    async prepare(folder) {
      program = join(folder, "floor");
      await compileFloor(program);
      return compilerVersion();
    },
    launch: ({ port }) => ({ command: program, args: [`${port}`], files: {} }),
  };
}

/** @throws ServerUnavailable without a compiler */
export async function compileFloor(program: string): Promise<void> {
  try {
    const { code, output } = await capture("cc", ["-O2", "-o", program, source], {
      cwd: "/",
      timeout: 60_000,
    });
    if (code !== 0) throw new ServerUnavailable(`cc cannot compile floor.c:\n${output}`);
  } catch (error) {
    if (error instanceof ServerUnavailable) throw error;
    throw new ServerUnavailable("not installed: cc (Debian package gcc)");
  }
}

async function compilerVersion(): Promise<string> {
  const { output } = await capture("cc", ["--version"], { cwd: "/", timeout: 10_000 });
  return output.split("\n", 1)[0] ?? "unknown";
}
