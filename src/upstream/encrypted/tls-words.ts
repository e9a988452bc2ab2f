/** Errors of TLS in the words of Go's crypto/tls, which operators know and `consolidate` patterns match. */
import { isIP } from "node:net";

/** The certificate does not match the expected name or address. */
export class WrongCertificateError extends Error {
  override readonly name = "WrongCertificateError";
}

/** The server agrees on no application protocol. */
export class NoProtocolError extends Error {
  override readonly name = "NoProtocolError";
}

/**
 * @param wanted the name or address that the certificate must match
 * @param alternativeNames in Node's form: `DNS:example.org, IP Address:192.0.2.1`; `undefined` without the extension
 */
export function wrongCertificate(
  wanted: string,
  alternativeNames: string | undefined,
): WrongCertificateError {
  const names = (alternativeNames ?? "").split(", ");
  const valuesOf = (kind: string): string[] =>
    names.filter((name) => name.startsWith(kind)).map((name) => name.slice(kind.length));
  const hosts = valuesOf("DNS:");
  const addresses = valuesOf("IP Address:");
  if (isIP(wanted) !== 0) {
    return new WrongCertificateError(
      addresses.length === 0
        ? `x509: cannot validate certificate for ${wanted} because it doesn't contain any IP SANs`
        : `x509: certificate is valid for ${addresses.join(", ")}, not ${wanted}`,
    );
  }
  return new WrongCertificateError(
    hosts.length === 0
      ? `x509: certificate is not valid for any names, but wanted to match ${wanted}`
      : `x509: certificate is valid for ${hosts.join(", ")}, not ${wanted}`,
  );
}

/** The message for an error of TLS; `undefined` for an error of the network below. */
export function describeTlsError(error: Error): string | undefined {
  if (error instanceof WrongCertificateError) return `tls: failed to verify certificate: ${error.message}`;
  if (error instanceof NoProtocolError) return "tls: the server did not select an application protocol";
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const certificate = CERTIFICATE_FAULTS.get(code);
  if (certificate !== undefined) return `tls: failed to verify certificate: x509: ${certificate}`;
  const alert = ALERTS.get(code.replace(/^ERR_SSL_(?:SSLV3|TLSV1|TLSV13)_ALERT_/, ""));
  if (alert !== undefined && /^ERR_SSL_.*_ALERT_/.test(code)) return `remote error: tls: ${alert}`;
  if (/wrong version number|packet length too long|http request/.test(error.message))
    return "tls: first record does not look like a TLS handshake";
  if (code === "EPROTO") return `tls: ${/:([^:]+):[^:]*:\d+:/.exec(error.message)?.[1] ?? error.message}`;
  if (code === "ERR_SSL_UNSUPPORTED_PROTOCOL") return "tls: protocol version not supported";
  if (code.startsWith("ERR_SSL_") || code.startsWith("ERR_TLS_")) return `tls: ${error.message}`;
  if (code === "ECONNRESET" && /secure TLS connection/.test(error.message)) return "EOF";
  return undefined;
}

const UNKNOWN_AUTHORITY = "certificate signed by unknown authority";

const CERTIFICATE_FAULTS: ReadonlyMap<string, string> = new Map([
  ["CERT_HAS_EXPIRED", "certificate has expired or is not yet valid"],
  ["CERT_NOT_YET_VALID", "certificate has expired or is not yet valid"],
  ["CERT_REVOKED", "certificate is revoked"],
  ["CERT_SIGNATURE_FAILURE", "certificate signature failure"],
  ["CERT_UNTRUSTED", UNKNOWN_AUTHORITY],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", UNKNOWN_AUTHORITY],
  ["INVALID_CA", "invalid CA certificate"],
  ["INVALID_PURPOSE", "certificate specifies an incompatible key usage"],
  ["SELF_SIGNED_CERT_IN_CHAIN", UNKNOWN_AUTHORITY],
  ["UNABLE_TO_GET_ISSUER_CERT", UNKNOWN_AUTHORITY],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", UNKNOWN_AUTHORITY],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", UNKNOWN_AUTHORITY],
]);

const ALERTS: ReadonlyMap<string, string> = new Map([
  ["ACCESS_DENIED", "access denied"],
  ["BAD_CERTIFICATE", "bad certificate"],
  ["CERTIFICATE_EXPIRED", "expired certificate"],
  ["CERTIFICATE_REQUIRED", "certificate required"],
  ["HANDSHAKE_FAILURE", "handshake failure"],
  ["INTERNAL_ERROR", "internal error"],
  ["NO_APPLICATION_PROTOCOL", "no application protocol"],
  ["PROTOCOL_VERSION", "protocol version not supported"],
  ["UNKNOWN_CA", "unknown certificate authority"],
  ["UNRECOGNIZED_NAME", "unrecognized name"],
  ["UNSUPPORTED_CERTIFICATE", "unsupported certificate"],
]);
