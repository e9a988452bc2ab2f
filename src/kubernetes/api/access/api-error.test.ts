import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  ApiConnectionError,
  ApiContentError,
  ApiSilenceError,
  ApiStatusError,
  CredentialError,
  explainFailure,
} from "./api-error.ts";

const SLICES = { verb: "watch", resource: "endpointslices", group: "discovery.k8s.io" } as const;
const SERVER = "https://10.96.0.1:443";

/** As undici passes on what the operating system, OpenSSL or Node says. */
function refused(code: string, message = "told in Node's words", more: object = {}): ApiConnectionError {
  return new ApiConnectionError(SERVER, Object.assign(new Error(message), { code, ...more }));
}

const CASES: readonly (readonly [title: string, error: unknown, words: RegExp])[] = [
  [
    "missing rights, with verb, resource and group",
    new ApiStatusError(403, "Forbidden", 'endpointslices is forbidden: User "x" cannot watch', undefined),
    /^no right to watch endpointslices \(403 Forbidden\): the ClusterRole .* the verbs list and watch on resource "endpointslices" of API group "discovery\.k8s\.io": endpointslices is forbidden/,
  ],
  [
    "credentials that the server does not know",
    new ApiStatusError(401, "Unauthorized", "Unauthorized", undefined),
    /^the API server rejects the credentials \(401 Unauthorized\): check the token or client certificate: Unauthorized$/,
  ],
  [
    "a resource that is not served",
    new ApiStatusError(404, "NotFound", "", undefined),
    /^the API server has no endpointslices of API group "discovery\.k8s\.io" \(404 Not Found\)$/,
  ],
  [
    "a server with too much to do",
    new ApiStatusError(429, "TooManyRequests", "", 1000),
    /^the API server has too much to do \(429/,
  ],
  [
    "any other answer",
    new ApiStatusError(500, "InternalError", "etcd", undefined),
    /^the API server answers 500 InternalError: etcd$/,
  ],
  [
    "a port without a listener",
    refused("ECONNREFUSED"),
    /^nothing listens at https:\/\/10\.96\.0\.1:443 \(connection refused\)$/,
  ],
  [
    "all addresses of a name refusing",
    new ApiConnectionError(
      SERVER,
      new AggregateError([Object.assign(new Error("one"), { code: "ECONNREFUSED" })], "all failed"),
    ),
    /^nothing listens at https/,
  ],
  ["no route to the host", refused("EHOSTUNREACH"), /^no route to https.* \(EHOSTUNREACH\)$/],
  ["no route to the network", refused("ENETUNREACH"), /^no route to https.* \(ENETUNREACH\)$/],
  [
    "packets that vanish",
    refused("UND_ERR_CONNECT_TIMEOUT"),
    /^no answer from https.* \(connection timed out\): look at routes, firewalls and network policies$/,
  ],
  [
    "a name that does not exist",
    refused("ENOTFOUND"),
    /^DNS: the name in https.* cannot be resolved \(ENOTFOUND\); the server's own pod must not ask itself: see dnsPolicy$/,
  ],
  ["a resolver that does not answer", refused("EAI_AGAIN"), /^DNS: .* cannot be resolved \(EAI_AGAIN\)/],
  [
    "a connection that broke",
    refused("UND_ERR_SOCKET", "other side closed"),
    /^the connection to https.* broke \(other side closed\)$/,
  ],
  ...[
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "UNABLE_TO_GET_ISSUER_CERT",
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "CERT_SIGNATURE_FAILURE",
  ].map(
    (code) =>
      [
        `a certificate of another authority: ${code}`,
        refused(code),
        /^TLS: the server's certificate is not from the authority that is trusted here \(https/,
      ] as const,
  ),
  ["a certificate out of date", refused("CERT_HAS_EXPIRED"), /^TLS: the server's certificate has expired/],
  [
    "a certificate of tomorrow",
    refused("CERT_NOT_YET_VALID"),
    /^TLS: the server's certificate is not valid yet: compare the clocks/,
  ],
  [
    "a certificate for other names",
    refused("ERR_TLS_CERT_ALTNAME_INVALID", "IP: 10.96.0.1 is not in the cert's list"),
    /^TLS: the server's certificate is for other names than the one asked for \(.*is not in the cert's list\)$/,
  ],
  [
    "a server without TLS",
    refused("ERR_SSL_WRONG_VERSION_NUMBER", "0A00010B:SSL routines:...", { reason: "wrong version number" }),
    /^TLS: what listens there does not speak TLS: is the URL one of http:\/\/\? \(https.*: wrong version number\)$/,
  ],
  [
    "a server with TLS of the past",
    refused("ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION"),
    /^TLS: the server speaks older versions of TLS only/,
  ],
  [
    "a client certificate that is not taken",
    refused("ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED"),
    /^TLS: the server does not take the client certificate, or wants one and gets none/,
  ],
  [
    "anything else in the handshake",
    refused("ERR_SSL_NO_SHARED_CIPHER"),
    /^TLS: the server is not spoken to in a way that it takes/,
  ],
  ["what has no code", new ApiConnectionError(SERVER, new Error("odd")), /^https:\/\/10\.96\.0\.1:443: odd$/],
  [
    "a token that cannot be read",
    new CredentialError("the token file cannot be read: ENOENT"),
    /^the token file/,
  ],
  [
    "an answer from elsewhere",
    new ApiContentError('the answer is "text/html"'),
    /^the answer is "text\/html"$/,
  ],
  ["silence", new ApiSilenceError(150_000), /^nothing was heard for 150 s$/],
];

describe("the log says why a request failed:", () => {
  for (const [title, error, words] of CASES) {
    it(title, () => assert.match(explainFailure(error, SLICES), words));
  }
});
