/** What can go wrong between this process and the API. */

/** The server answered, and what it answered is a failure: `code` is that of HTTP or of an event of a watch. */
export class ApiStatusError extends Error {
  override readonly name = "ApiStatusError";
  readonly code: number;
  /** The word that the server gives: `Forbidden`, `Expired`; may be empty. */
  readonly reason: string;
  /** How long the server wants to be left alone, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(code: number, reason: string, message: string, retryAfterMs: number | undefined) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }

  /** The revision to go on from, or the page to read, is forgotten. */
  get isExpired(): boolean {
    return this.code === 410 || this.reason === "Expired" || this.reason === "Gone";
  }
}

/** No answer: the connection could not be made, or broke. */
export class ApiConnectionError extends Error {
  override readonly name = "ApiConnectionError";
  readonly server: string;

  constructor(server: string, cause: unknown) {
    super(`${server}: ${errorText(cause)}`, { cause });
    this.server = server;
  }
}

/** An answer that is not what was asked for: HTML, half a document, another kind. */
export class ApiContentError extends Error {
  override readonly name = "ApiContentError";
}

/** Nothing has been heard for so long that the connection counts as lost. */
export class ApiSilenceError extends Error {
  override readonly name = "ApiSilenceError";
  readonly silenceMs: number;

  constructor(silenceMs: number) {
    super(`nothing was heard for ${Math.round(silenceMs / 1000)} s`);
    this.silenceMs = silenceMs;
  }
}

/** Pings on a connection of HTTP/2 are not answered any more. */
export class DeadConnectionError extends Error {
  override readonly name = "DeadConnectionError";
  readonly silenceMs: number;

  constructor(silenceMs: number) {
    super(`nothing came for ${Math.round(silenceMs / 1000)} s, not even answers to pings`);
    this.silenceMs = silenceMs;
  }
}

/** No credentials available: the token file cannot be read, or the program fails. */
export class CredentialError extends Error {
  override readonly name = "CredentialError";
}

/** What was asked for, for the words of a message. */
export interface RequestSubject {
  readonly verb: "list" | "watch";
  /** `services` */
  readonly resource: string;
  /** Empty for the core group. */
  readonly group: string;
  /** What to do where the server has no such resource, as many have not. */
  readonly remedy?: string | undefined;
}

/** One line on why a request failed and what to look at. */
export function explainFailure(error: unknown, { verb, resource, group, remedy }: RequestSubject): string {
  if (error instanceof ApiStatusError) {
    const { code, message } = error;
    const said = message === "" ? "" : `: ${message}`;
    switch (code) {
      case 401:
        return `the API server rejects the credentials (401 Unauthorized): check the token or client certificate${said}`;
      case 403:
        return (
          `no right to ${verb} ${resource} (403 Forbidden): the ClusterRole of this server needs the verbs list and watch ` +
          `on resource "${resource}" of API group "${group}"${said}`
        );
      case 404:
        return `the API server has no ${resource} of API group "${group}" (404 Not Found)${remedy === undefined ? said : `: ${remedy}`}`;
      case 429:
        return `the API server has too much to do (429 Too Many Requests)${said}`;
      default:
        return `the API server answers ${code}${error.reason === "" ? "" : ` ${error.reason}`}${said}`;
    }
  }
  if (error instanceof ApiConnectionError) return explainConnection(error);
  return errorText(error);
}

function explainConnection({ server, cause, message }: ApiConnectionError): string {
  const code = codeOf(cause);
  const text = errorText(cause);
  if (code === "ECONNREFUSED") return `nothing listens at ${server} (connection refused)`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN" || code === "EAI_FAIL")
    return `DNS: the name in ${server} cannot be resolved (${code}); the server's own pod must not ask itself: see dnsPolicy`;
  if (code === "EHOSTUNREACH" || code === "ENETUNREACH" || code === "EADDRNOTAVAIL")
    return `no route to ${server} (${code})`;
  if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT")
    return `no answer from ${server} (connection timed out): look at routes, firewalls and network policies`;
  if (code === "ECONNRESET" || code === "UND_ERR_SOCKET" || code === "EPIPE")
    return `the connection to ${server} broke (${text})`;
  const tls = TLS_FAILURES.find(([codes]) => codes.includes(code));
  if (tls !== undefined) return `TLS: ${tls[1]} (${server}: ${text})`;
  if (code.startsWith("ERR_SSL") || code.startsWith("ERR_TLS") || code === "EPROTO")
    return `TLS: ${handshakeFailure(code)} (${server}: ${reasonOf(cause) ?? text})`;
  return message;
}

/** What OpenSSL's codes mean for the operator. */
function handshakeFailure(code: string): string {
  if (/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/.test(code))
    return "what listens there does not speak TLS: is the URL one of http://?";
  if (/PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL/.test(code))
    return "the server speaks older versions of TLS only";
  if (/ALERT.*(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/.test(code))
    return "the server does not take the client certificate, or wants one and gets none";
  return "the server is not spoken to in a way that it takes";
}

/** OpenSSL's own words, without the place in its sources. */
function reasonOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return "reason" in error && typeof error.reason === "string" ? error.reason : reasonOf(error.cause);
}

const TLS_FAILURES: readonly (readonly [codes: readonly string[], words: string])[] = [
  [
    [
      "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
      "SELF_SIGNED_CERT_IN_CHAIN",
      "DEPTH_ZERO_SELF_SIGNED_CERT",
      "UNABLE_TO_GET_ISSUER_CERT",
      "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
      "CERT_SIGNATURE_FAILURE",
    ],
    "the server's certificate is not from the authority that is trusted here",
  ],
  [["CERT_HAS_EXPIRED"], "the server's certificate has expired"],
  [["CERT_NOT_YET_VALID"], "the server's certificate is not valid yet: compare the clocks"],
  [["ERR_TLS_CERT_ALTNAME_INVALID"], "the server's certificate is for other names than the one asked for"],
];

/** An error with its causes, in one line. */
export function errorText(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(errorText).join(", ");
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  const own = error.message === "" ? error.name : error.message;
  return cause instanceof Error && !own.includes(cause.message) ? `${own}: ${errorText(cause)}` : own;
}

/** The code of an error, or of the first of its causes that has one. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if ("code" in error && typeof error.code === "string" && error.code !== "UND_ERR_ABORTED")
    return error.code;
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return codeOf(error.cause);
}
