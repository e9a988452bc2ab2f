/** A control group with a limit of memory (cgroups(7)), in either version, for one server. Needs root. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = "/sys/fs/cgroup";

/** The system's actions to keep the group within its limit. */
export interface GroupEvents {
  /** Times that the limit was reached, and memory taken back. */
  readonly reclaims: number;
  /** Processes that were killed. */
  readonly kills: number;
  /** The most that was charged to the group, pages of files included, megabytes of 10^6 octets. */
  readonly peakMegabytes: number;
}

export class ControlGroup implements Disposable {
  readonly #folder: string;
  readonly #isUnified: boolean;

  /** @throws Error where groups cannot be made */
  constructor(name: string, limitMebibytes: number) {
    this.#isUnified = existsSync(join(ROOT, "cgroup.controllers"));
    this.#folder = join(ROOT, this.#isUnified ? "" : "memory", name);
    if (this.#isUnified) writeFileSync(join(ROOT, "cgroup.subtree_control"), "+memory");
    mkdirSync(this.#folder, { recursive: true });
    this.#write(this.#isUnified ? "memory.max" : "memory.limit_in_bytes", `${limitMebibytes * 2 ** 20}`);
  }

  /** The command line that runs a command in the group, as the same process. */
  command(command: string, args: readonly string[]): { command: string; args: readonly string[] } {
    const script = 'echo $$ > "$0" && exec "$@"';
    return { command: "sh", args: ["-c", script, join(this.#folder, "cgroup.procs"), command, ...args] };
  }

  /** Since the group was made. */
  get events(): GroupEvents {
    if (this.#isUnified) {
      const events = this.#read("memory.events");
      return {
        reclaims: field(events, "max"),
        kills: field(events, "oom_kill"),
        peakMegabytes: Number(this.#read("memory.peak")) / 1e6,
      };
    }
    return {
      reclaims: Number(this.#read("memory.failcnt")),
      kills: field(this.#read("memory.oom_control"), "oom_kill"),
      peakMegabytes: Number(this.#read("memory.max_usage_in_bytes")) / 1e6,
    };
  }

  /** To be called when its process has ended. */
  [Symbol.dispose](): void {
    rmdirSync(this.#folder);
  }

  #read(file: string): string {
    return readFileSync(join(this.#folder, file), "latin1");
  }

  #write(file: string, text: string): void {
    writeFileSync(join(this.#folder, file), text);
  }
}

function field(text: string, name: string): number {
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1] ?? 0);
}
