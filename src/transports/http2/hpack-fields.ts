/** Header fields of requests: numbers of the used ones, and the static table of HPACK (RFC 7541 appendix A). */
import { TRACE_CONTEXT_HEADERS } from "../../plugin/message/trace-context.ts";

export const FieldName = {
  /** Not used here. */
  OTHER: 0,
  METHOD: 1,
  PATH: 2,
  SCHEME: 3,
  AUTHORITY: 4,
  CONTENT_LENGTH: 5,
  CONTENT_TYPE: 6,
  TE: 7,
  /** Invalid in a request: it belongs to one connection of HTTP/1.1, to a response, or is malformed (RFC 9113 section 8.2). */
  FORBIDDEN: 8,
  /** The first of {@link TRACE_CONTEXT_HEADERS}; the others follow in order. */
  TRACE: 9,
} as const;

const NUMBERS: ReadonlyMap<string, number> = new Map<string, number>([
  [":method", FieldName.METHOD],
  [":path", FieldName.PATH],
  [":scheme", FieldName.SCHEME],
  [":authority", FieldName.AUTHORITY],
  ["content-length", FieldName.CONTENT_LENGTH],
  ["content-type", FieldName.CONTENT_TYPE],
  ["te", FieldName.TE],
  ["connection", FieldName.FORBIDDEN],
  ["keep-alive", FieldName.FORBIDDEN],
  ["proxy-connection", FieldName.FORBIDDEN],
  ["transfer-encoding", FieldName.FORBIDDEN],
  ["upgrade", FieldName.FORBIDDEN],
  ...TRACE_CONTEXT_HEADERS.map((name, index) => [name, FieldName.TRACE + index] as const),
]);

export function fieldNumber(name: string): number {
  // Pseudo-headers of responses, and unknown ones.
  return NUMBERS.get(name) ?? (name.startsWith(":") ? FieldName.FORBIDDEN : FieldName.OTHER);
}

/** Names and values, separated by a space; most have no value. */
export const STATIC_TABLE: readonly (readonly [name: string, value: string])[] = `\
:authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|:status 200|:status 204|:status 206|:status 304|\
:status 400|:status 404|:status 500|accept-charset|accept-encoding gzip, deflate|accept-language|accept-ranges|accept|\
access-control-allow-origin|age|allow|authorization|cache-control|content-disposition|content-encoding|content-language|content-length|\
content-location|content-range|content-type|cookie|date|etag|expect|expires|from|host|if-match|if-modified-since|if-none-match|if-range|\
if-unmodified-since|last-modified|link|location|max-forwards|proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|\
server|set-cookie|strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate`
  .split("|")
  .map((entry) => {
    const space = entry.indexOf(" ");
    return space < 0 ? [entry, ""] : [entry.slice(0, space), entry.slice(space + 1)];
  });
