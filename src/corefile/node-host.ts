import { readdirSync, readFileSync, statSync } from "node:fs";
import { messageOf } from "../lib/text/message-of.ts";
import type { CorefileHost, FileContent } from "./host.ts";

/**
 * The machine's file system and the process's environment. Reads are synchronous, because they happen only at start and at reload.
 */
export const nodeHost: CorefileHost = {
  readFile,
  list(directory) {
    try {
      return readdirSync(directory);
    } catch {
      // A pattern for a missing directory matches nothing; the parser reports that.
      return undefined;
    }
  },
  environmentVariable(name) {
    // `process.env` inherits from Object, and no variable is called `toString`.
    return Object.hasOwn(process.env, name) ? process.env[name] : undefined;
  },
};

/** The reason why a pipe or a device is not read. */
export const NO_FILE = "not a regular file";

/** Far beyond any Corefile; an import that names a core dump must not fill the memory. */
const MAX_FILE_OCTETS = 16 * 1024 * 1024;

function readFile(path: string): FileContent {
  try {
    const status = statSync(path, { throwIfNoEntry: false });
    if (status === undefined) return { kind: "missing" };
    if (status.isDirectory()) return { kind: "directory" };
    // A pipe or device could block the process forever, or never end.
    if (!status.isFile()) return { kind: "unreadable", reason: NO_FILE };
    if (status.size > MAX_FILE_OCTETS) {
      return { kind: "unreadable", reason: `larger than ${MAX_FILE_OCTETS / 1024 / 1024} MiB` };
    }
    const text = readFileSync(path, "utf8");
    return text.includes("\0")
      ? { kind: "unreadable", reason: "is not a text file" }
      : { kind: "text", text };
  } catch (error) {
    return { kind: "unreadable", reason: reasonOf(error) };
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "EACCES" || code === "EPERM") return "no permission to read it";
  return messageOf(error);
}
