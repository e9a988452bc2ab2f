/** Encodes an HTTP/3 request for its way from the listener's thread to the answering one. */
import { readU16, writeU16 } from "../../dns/octets.ts";
import type { TraceHeaders } from "../../plugin/message/endpoint.ts";

export interface H3RequestParts {
  readonly method: string;
  readonly path: string;
  /** Trace headers of the request. */
  readonly trace: TraceHeaders | undefined;
  /** `undefined` if it was too long. */
  readonly body: Uint8Array | undefined;
}

const HEAD = 7;

export function packRequest({ method, path, trace, body }: H3RequestParts): Uint8Array {
  const [methodOctets, pathOctets] = [Buffer.from(method, "latin1"), Buffer.from(path, "latin1")];
  const traceOctets = Buffer.from(trace === undefined ? "" : JSON.stringify(trace), "utf8");
  const head = new Uint8Array(HEAD);
  head[0] = body === undefined ? 1 : 0;
  writeU16(head, 1, methodOctets.length);
  writeU16(head, 3, pathOctets.length);
  writeU16(head, 5, traceOctets.length);
  return Buffer.concat([head, methodOctets, pathOctets, traceOctets, body ?? new Uint8Array(0)]);
}

export function unpackRequest(octets: Uint8Array): H3RequestParts {
  const methodEnd = HEAD + readU16(octets, 1);
  const pathEnd = methodEnd + readU16(octets, 3);
  const traceEnd = pathEnd + readU16(octets, 5);
  const text = (from: number, to: number): string =>
    Buffer.from(octets.subarray(from, to)).toString("latin1");
  return {
    method: text(HEAD, methodEnd),
    path: text(methodEnd, pathEnd),
    trace: traceEnd === pathEnd ? undefined : readTrace(octets.subarray(pathEnd, traceEnd)),
    body: octets[0] === 1 ? undefined : octets.subarray(traceEnd),
  };
}

/** Written by {@link packRequest}, in another thread of this process. */
function readTrace(octets: Uint8Array): TraceHeaders {
  return JSON.parse(Buffer.from(octets).toString("utf8")) as TraceHeaders;
}
