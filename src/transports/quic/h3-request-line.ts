/** Reads the header of a request over HTTP/3 (RFC 9114 sections 4.2 and 4.3). */
import type { TraceHeaders } from "../../plugin/message/endpoint.ts";
import { TRACE_CONTEXT_HEADERS } from "../../plugin/message/trace-context.ts";
import type { H3RequestParts } from "./h3-handover.ts";
import type { HeaderField } from "./qpack.ts";

export interface RequestLine extends Omit<H3RequestParts, "body"> {
  /** Octets of the body; `undefined` if the client does not say. */
  readonly contentLength: number | undefined;
}

const PSEUDO_HEADERS: ReadonlySet<string> = new Set([":method", ":path", ":scheme", ":authority"]);
/** They belong to one connection of HTTP/1.1. */
const FORBIDDEN: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

/** @returns `undefined` if the request is malformed */
export function readRequestLine(fields: readonly HeaderField[]): RequestLine | undefined {
  const pseudo = fields.filter(({ name }) => name.startsWith(":"));
  const isMixed = fields.slice(0, pseudo.length).some(({ name }) => !name.startsWith(":"));
  const isOdd = fields.some(
    ({ name, value }) => /[A-Z]/.test(name) || FORBIDDEN.has(name) || (name === "te" && value !== "trailers"),
  );
  const known = new Map(pseudo.map(({ name, value }) => [name, value]));
  const [method, path, scheme] = [known.get(":method"), known.get(":path"), known.get(":scheme")];
  if (isMixed || isOdd || known.size < pseudo.length || !method || !path || !scheme) return undefined;
  if ([...known.keys()].some((name) => !PSEUDO_HEADERS.has(name))) return undefined;
  const lengths = new Set(fields.flatMap(({ name, value }) => (name === "content-length" ? [value] : [])));
  const [length] = lengths;
  if (lengths.size > 1 || (length !== undefined && !/^\d{1,15}$/.test(length))) return undefined;
  const contentLength = length === undefined ? undefined : Number(length);
  return { method, path, trace: traceOf(fields), contentLength };
}

/** Trace headers of a request. */
function traceOf(fields: readonly HeaderField[]): TraceHeaders | undefined {
  const found = fields.filter(({ name }) => TRACE_CONTEXT_HEADERS.includes(name));
  return found.length === 0 ? undefined : Object.fromEntries(found.map(({ name, value }) => [name, value]));
}
