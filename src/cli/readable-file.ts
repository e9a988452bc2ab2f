/** Files that are named on a command line, looked at before anything is begun with them. */
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { describeFileError, isMissing } from "../kubernetes/manifests/file-system.ts";

export interface Expected {
  readonly maxMebibytes: number;
  /** A folder will do, too; what is in it is not looked at. */
  readonly orFolder?: boolean;
}

/** As many octets as tell a text from anything else. */
const SAMPLE = 64 * 1024;

/** Why the file cannot be used, to stand behind its name and a colon; `undefined` where it can. */
export function faultOfFile(path: string, { maxMebibytes, orFolder = false }: Expected): string | undefined {
  try {
    const status = statSync(path);
    if (status.isDirectory()) return orFolder ? undefined : "is a directory";
    // A pipe or device could block the process for ever.
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
