/** Whether this machine can run what is tested over QUIC. */
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { judgeOpenSsl } from "../../src/quic/availability.ts";

/** The reason why there is no QUIC here, and false where there is. */
export function skipWithoutQuic(...tools: readonly string[]): string | false {
  try {
    if (process.platform !== "linux") return "QUIC is for Linux";
    judgeOpenSsl(process.versions.openssl);
    return skipWithout(...tools);
  } catch (error) {
    return String(error);
  }
}
