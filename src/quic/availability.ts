/** Whether QUIC can be had here, as far as that is known without loading anything. */

/** QUIC cannot be had; the message says why, and what to do about it. */
export class QuicUnavailable extends Error {
  override readonly name = "QuicUnavailable";
}

/** Older releases have faults that a stranger can use to end the process (CVE-2026-42764, CVE-2026-34183). */
const OLDEST = [3, 5, 7];
/** Releases before it have known faults as well (CVE-2026-54873, -75804, -42772, -35191), but no Node may have a later one yet. */
const SOUND = [3, 5, 9];

/**
 * @param openssl version of the OpenSSL inside Node, as `process.versions` has it
 * @returns what the operator should know about it; `undefined` where all is well
 * @throws QuicUnavailable
 */
export function judgeOpenSsl(openssl: string | undefined): string | undefined {
  const version = (openssl ?? "").split(/[.+-]/, 3).map(Number);
  if (version.length < 3 || version.some(Number.isNaN))
    throw new QuicUnavailable(`QUIC needs OpenSSL ${OLDEST.join(".")} or later; this Node has none`);
  if (isBefore(version, OLDEST))
    throw new QuicUnavailable(
      `QUIC needs OpenSSL ${OLDEST.join(".")} or later, and this Node has ${openssl}: update Node`,
    );
  if (isBefore(version, SOUND))
    return `QUIC is served by OpenSSL ${openssl}, which has known faults: update Node when there is one with ${SOUND.join(".")} or later`;
  return undefined;
}

function isBefore(version: readonly number[], other: readonly number[]): boolean {
  for (const [index, part] of other.entries()) {
    const mine = version[index] ?? 0;
    if (mine !== part) return mine < part;
  }
  return false;
}
