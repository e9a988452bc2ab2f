/** The arguments of the directive: type and address of the collector. */

export type CollectorKind = "zipkin" | "datadog" | "otlp";

const DEFAULTS: Readonly<Record<CollectorKind, string>> = {
  zipkin: "localhost:9411",
  datadog: "localhost:8126",
  otlp: "localhost:4318",
};
const PATHS: Readonly<Record<CollectorKind, string>> = {
  zipkin: "/api/v2/spans",
  datadog: "/v0.4/traces",
  otlp: "/v1/traces",
};

export interface CollectorPlace {
  readonly kind: CollectorKind;
  readonly url: URL;
}

/** @returns an error message for invalid arguments */
export function readCollector(words: readonly string[]): CollectorPlace | string {
  if (words.length > 2) return `'${words[2]}' is one argument too many: trace [ENDPOINT-TYPE] [ENDPOINT]`;
  const [first, second] = words;
  // A single word is a type if it is the name of one, else a Zipkin endpoint.
  if (second === undefined) {
    if (first === undefined) return placeOf("zipkin", DEFAULTS.zipkin);
    return isKind(first) ? placeOf(first, DEFAULTS[first]) : placeOf("zipkin", first);
  }
  const kind = first?.toLowerCase() ?? "";
  if (!isKind(kind)) return `tracing endpoint type '${kind}' is not supported`;
  return placeOf(kind, second);
}

function isKind(word: string): word is CollectorKind {
  return word === "zipkin" || word === "datadog" || word === "otlp";
}

function placeOf(kind: CollectorKind, endpoint: string): CollectorPlace | string {
  const isUrl = /^https?:\/\//i.test(endpoint);
  const text = isUrl ? endpoint : `http://${endpoint}${kind === "zipkin" ? PATHS.zipkin : ""}`;
  const url = !isUrl && endpoint.includes("://") ? null : URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "")
    return `'${endpoint}' is not an endpoint: expected a URL such as http://collector:4318, or HOST:PORT`;
  if (url.pathname === "/" && url.search === "") url.pathname = PATHS[kind];
  return { kind, url };
}
