/** Messages on a stream, each behind two octets of length (RFC 1035 section 4.2.2). */

/** A message with its length before it. */
export function frame(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(message.length + 2);
  framed.writeUInt16BE(message.length);
  framed.set(message, 2);
  return framed;
}

/** Finds messages in what a connection delivers piece by piece. */
export class FrameSplitter {
  #rest: Buffer = Buffer.alloc(0);

  /** @param onMessage gets each message that is complete by now; it is only lent */
  push(chunk: Buffer, onMessage: (message: Uint8Array) => void): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= 2) {
      const end = at + 2 + bytes.readUInt16BE(at);
      if (end > bytes.length) break;
      onMessage(bytes.subarray(at + 2, end));
      at = end;
    }
    this.#rest = bytes.subarray(at);
  }
}
