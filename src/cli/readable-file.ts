/** Checks files named on a command line before work begins. */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { describeFileError, isMissing } from "../kubernetes/manifests/file-system.ts";

export interface Expected {
  readonly maxMebibytes: number;
  /** A folder is accepted, too; its content is not checked. */
  readonly orFolder?: boolean;
}

/** Enough bytes to tell text from binary data. */
const SAMPLE = 64 * 1024;

/** Returns why the file cannot be used, worded to follow its name and a colon; `undefined` if it can. */
export function faultOfFile(path: string, { maxMebibytes, orFolder = false }: Expected): string | undefined {
  try {
    const status = statSync(path);
    if (status.isDirectory()) return orFolder ? undefined : "is a directory";
    // A pipe or device could block the process forever.
    if (!status.isFile()) return "is not a file";
    if (status.size > maxMebibytes * 1024 * 1024) return `larger than ${maxMebibytes} MiB`;
    return beginning(path).includes(0) ? "is not a text file" : undefined;
  } catch (error) {
    return isMissing(error) ? "no such file" : describeFileError(error);
  }
}

function beginning(path: string): Uint8Array {
  const descriptor = openSync(path, "r");
  try {
    const sample = new Uint8Array(SAMPLE);
    return sample.subarray(0, readSync(descriptor, sample));
  } finally {
    closeSync(descriptor);
  }
}
