/** Waits for files to change, for `-watch`. */
import { setTimeout as delay } from "node:timers/promises";
import { machineFileSystem } from "../../kubernetes/manifests/file-system.ts";
import { findFiles } from "../../kubernetes/manifests/find-files.ts";

/** Milliseconds between two checks. */
const INTERVAL = 300;

/** The state of the files below some paths. */
export interface Snapshot {
  /** Changes when one of the files is changed, added or removed. */
  readonly stamp: string;
  /** Unix time of the last change, milliseconds. */
  readonly changedAt: number;
}

export async function lookAt(paths: Iterable<string>): Promise<Snapshot> {
  const { files, unknown } = await findFiles([...paths], machineFileSystem);
  return {
    stamp: [...files.map(({ path, state }) => `${path} ${state.stamp}`), ...unknown].join("\n"),
    changedAt: Math.max(0, ...files.map(({ state }) => state.modifiedAt)),
  };
}

/** Resolves when the stamp of the paths differs from `stamp`. */
export async function changed(paths: Iterable<string>, stamp: string): Promise<void> {
  do await delay(INTERVAL);
  while ((await lookAt(paths)).stamp === stamp);
}
