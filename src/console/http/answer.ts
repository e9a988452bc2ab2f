/** Answers of the console over HTTP: JSON with security headers. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../../lib/text/message-of.ts";
import { RequestError } from "./request-error.ts";

/** Scripts and styles come only from the console itself; no page may frame it. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

export function answerJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    ...SECURITY_HEADERS,
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    "cache-control": "no-store",
    ...headers,
    // The rest of a body that was not read would be taken for the next request.
    ...(status >= 400 && { connection: "close" }),
  });
  response.end(text);
}

export function answerCsv(response: ServerResponse, text: string): void {
  response.writeHead(200, {
    ...SECURITY_HEADERS,
    "content-type": "text/csv; charset=utf-8; header=present",
    "content-length": Buffer.byteLength(text),
    "content-disposition": 'attachment; filename="queries.csv"',
    "cache-control": "no-store",
  });
  response.end(text);
}

export function answerError(
  response: ServerResponse,
  error: unknown,
  onFault: (error: unknown) => void,
): void {
  const status = error instanceof RequestError ? error.status : 500;
  if (status === 500) onFault(error);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const reason = messageOf(error);
  answerJson(response, status, { error: reason }, error instanceof RequestError ? error.headers : {});
}

const MAX_BODY = 4_096;

/**
 * The body of a request, at most 4096 bytes.
 * @throws RequestError
 */
export async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving a loop over the stream would destroy the connection before the client reads the reason.
  await new Promise<void>((resolve, reject) => {
    request.on("data", (chunk: Uint8Array) => {
      length += chunk.length;
      if (length <= MAX_BODY) chunks.push(chunk);
      else reject(new RequestError(413, `a request has at most ${MAX_BODY} bytes`));
    });
    request.once("end", resolve);
    const broken = (): void => reject(new RequestError(400, "the request was aborted"));
    request.once("error", broken);
    request.once("close", broken);
  });
  return Buffer.concat(chunks).toString();
}
