/** Admits programs on this machine, but no web page in a browser that runs on it. */
import type { IncomingMessage } from "node:http";
import { isLoopbackHost } from "../../console/http/loopback.ts";
import { RequestError } from "../../console/http/request-error.ts";

/**
 * Any web page can make a browser on this machine send requests here. It cannot set the headers Host and Origin, nor
 * send JSON without a preflight request, so these three identify it; Host contains any name of the page's own that
 * resolves to 127.0.0.1. @throws RequestError
 */
export function checkRequest({ method, headers }: IncomingMessage): void {
  const host = hostOf(headers.host);
  if (host === undefined || !isLoopbackHost(host))
    throw new RequestError(
      403,
      "the header Host is not a loopback address: use http://127.0.0.1:PORT/explain",
    );
  if (headers.origin !== undefined || headers["sec-fetch-site"] !== undefined)
    throw new RequestError(403, "requests from web pages are refused");
  if (method !== "POST") {
    throw new RequestError(
      405,
      `POST a question, such as: curl -H 'content-type: application/json' -d '{"name":"example.org"}' http://${headers.host}/explain`,
    );
  }
  const [type = ""] = (headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/json")
    throw new RequestError(415, "the content type must be application/json");
}

/** Without the port; `undefined` for a missing or malformed header. */
function hostOf(header: string | undefined): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d{1,5})?$/i.exec(header ?? "")?.[1];
}
