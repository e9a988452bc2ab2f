/**
 * The switch for everything that depends on undocumented behaviour of V8, the C library, Node's binary or another
 * package.
 */
import { setFlagsFromString } from "node:v8";
import type * as Koffi from "koffi";

/** `PORTOLAN_RUNTIME=plain` restricts the program to documented features of Node. */
export const RUNTIME_VARIABLE = "PORTOLAN_RUNTIME";

export function isPlain(environment: NodeJS.ProcessEnv = process.env): boolean {
  return environment[RUNTIME_VARIABLE] === "plain";
}

/** Sets a flag of the running V8. */
export function setRunningFlag(flag: string): void {
  if (!isPlain()) setFlagsFromString(flag);
}

/**
 * The only access to C functions.
 * @throws Error if koffi is not installed, has no binary for this system, or is switched off
 */
export async function loadKoffi(): Promise<(typeof Koffi)["default"]> {
  if (isPlain()) throw new Error(`${RUNTIME_VARIABLE}=plain is set`);
  const { default: koffi } = await import("koffi");
  return koffi;
}
