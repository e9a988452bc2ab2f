/** A request of HTTP/3 as it passes from the thread of its listener to the one that answers. */
import { readU16, writeU16 } from "../../dns/octets.ts";

export interface H3RequestParts {
  readonly method: string;
  readonly path: string;
  /** `undefined` where it was too long. */
  readonly body: Uint8Array | undefined;
}

const HEAD = 5;

export function packRequest({ method, path, body }: H3RequestParts): Uint8Array {
  const [methodOctets, pathOctets] = [Buffer.from(method, "latin1"), Buffer.from(path, "latin1")];
  const head = new Uint8Array(HEAD);
  head[0] = body === undefined ? 1 : 0;
  writeU16(head, 1, methodOctets.length);
  writeU16(head, 3, pathOctets.length);
  return Buffer.concat([head, methodOctets, pathOctets, body ?? new Uint8Array(0)]);
}

export function unpackRequest(octets: Uint8Array): H3RequestParts {
  const methodEnd = HEAD + readU16(octets, 1);
  const pathEnd = methodEnd + readU16(octets, 3);
  const text = (from: number, to: number): string =>
    Buffer.from(octets.subarray(from, to)).toString("latin1");
  return {
    method: text(HEAD, methodEnd),
    path: text(methodEnd, pathEnd),
    body: octets[0] === 1 ? undefined : octets.subarray(pathEnd),
  };
}
