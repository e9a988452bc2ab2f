/** The switch for all that rests on undocumented behaviour of V8, the C library, Node's binary or another package. */
import { setFlagsFromString } from "node:v8";
import type * as Koffi from "koffi";

/** `PORTOLAN_RUNTIME=plain` has the program do with what Node documents. */
export const RUNTIME_VARIABLE = "PORTOLAN_RUNTIME";

export function isPlain(environment: NodeJS.ProcessEnv = process.env): boolean {
  return environment[RUNTIME_VARIABLE] === "plain";
}

/** Sets a flag of V8, which runs already. */
export function setRunningFlag(flag: string): void {
  if (!isPlain()) setFlagsFromString(flag);
}

/**
 * The only way to functions of C.
 * @throws Error where koffi is not installed, has no binary for this system, or is switched off
 */
export async function loadKoffi(): Promise<(typeof Koffi)["default"]> {
  if (isPlain()) throw new Error(`${RUNTIME_VARIABLE}=plain is set`);
  const { default: koffi } = await import("koffi");
  return koffi;
}
