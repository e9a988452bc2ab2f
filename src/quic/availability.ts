/** Whether QUIC is available, as far as that is known without loading anything. */

/** QUIC is unavailable; the message has the reason and the remedy. */
export class QuicUnavailable extends Error {
  override readonly name = "QuicUnavailable";
}

/** Older releases have faults that let an attacker end the process (CVE-2026-42764, CVE-2026-34183). */
const OLDEST = [3, 5, 7];
/** Earlier releases have known faults as well (CVE-2026-54873, -75804, -42772, -35191), but Node may not have a later one yet. */
const SOUND = [3, 5, 9];

/**
 * @param openssl version of Node's OpenSSL, as in `process.versions`
 * @returns a warning for the operator, if there is one
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
