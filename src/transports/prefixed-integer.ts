/** Integers in header blocks of HTTP/2 and HTTP/3, which begin within an octet (RFC 7541 section 5.1). */

/**
 * @param flags the bits before the prefix
 * @param prefix bits of the first octet that belong to the integer
 */
export function pushInteger(out: number[], flags: number, prefix: number, value: number): void {
  const most = (1 << prefix) - 1;
  if (value < most) {
    out.push(flags | value);
    return;
  }
  out.push(flags | most);
  let rest = value - most;
  for (; rest >= 0x80; rest >>>= 7) out.push((rest & 0x7f) | 0x80);
  out.push(rest);
}
