/** Checks whether a certificate and its key can be used, with the reason in plain words. */

import type { SecureContextOptions } from "node:tls";
import { nodeCrypto, nodeTls } from "../files/node-modules.ts";
import { messageOf } from "../text/message-of.ts";

/** @throws Error with the problem of the certificate, the key, the pair, or the authorities (`ca`) */
export function checkKeyPair(context: SecureContextOptions): void {
  checkPem(textOf(context.cert), textOf(context.key));
  if (context.ca !== undefined) checkAuthorities(textOf(context.ca as string | Buffer));
  try {
    nodeTls().createSecureContext(context);
  } catch (error) {
    throw new Error(plain(messageOf(error)), { cause: error });
  }
}

/**
 * Catches what TLS accepts silently: an empty text would count as no certificate.
 * @throws Error
 */
export function checkPem(cert: string, key: string): void {
  if (!/-----BEGIN (TRUSTED |X509 )?CERTIFICATE-----/.test(cert))
    throw new Error("the certificate file holds no certificate in PEM form");
  if (!/-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----/.test(key))
    throw new Error("the key file holds no private key in PEM form");
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(key))
    throw new Error(
      "the key is encrypted with a password: decrypt it first (openssl pkey -in KEY -out PLAIN_KEY)",
    );
}

/** A file without a readable authority would count as no authorities, too. */
function checkAuthorities(pem: string): void {
  const blocks = pem.match(/-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]*-----END [A-Z0-9 ]*-----/g);
  if (!(blocks ?? []).some(isCertificate))
    throw new Error("the file of certificate authorities holds no certificate in PEM form");
}

function isCertificate(pem: string): boolean {
  try {
    void new (nodeCrypto().X509Certificate)(pem);
    return true;
  } catch {
    return false;
  }
}

function textOf(pem: SecureContextOptions["cert" | "key"]): string {
  if (typeof pem === "string") return pem;
  return Buffer.isBuffer(pem) ? pem.toString("latin1") : "";
}

/** @param message such as `error:05800074:x509 certificate routines::key values mismatch` */
function plain(message: string): string {
  const reason = message.replace(/^error:\w+:[^:]*:[^:]*:/, "");
  return reason === "key values mismatch" || reason === "key type mismatch"
    ? `the key does not belong to the certificate (${reason})`
    : reason;
}
