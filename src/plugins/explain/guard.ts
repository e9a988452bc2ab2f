/** Who may ask: programs on this machine, and no web page in a browser that runs on it. */
import type { IncomingMessage } from "node:http";
import { isLoopbackHost } from "../../console/http/loopback.ts";
import { RequestError } from "../../console/http/request-error.ts";

/**
 * A page of any web site can have a browser on this machine send requests here. It cannot choose the headers Host and Origin, nor send
 * JSON without asking first, so these three give it away; a name of the page's own that was made to point to 127.0.0.1 stands in Host.
 * @throws RequestError
 */
export function checkRequest({ method, headers }: IncomingMessage): void {
  const host = hostOf(headers.host);
  if (host === undefined || !isLoopbackHost(host))
    throw new RequestError(
      403,
      "the header Host names no loopback address: ask http://127.0.0.1:PORT/explain",
    );
  if (headers.origin !== undefined || headers["sec-fetch-site"] !== undefined)
    throw new RequestError(403, "requests of web pages are refused");
  if (method !== "POST") {
    throw new RequestError(
      405,
      `POST a question, such as: curl -H 'content-type: application/json' -d '{"name":"example.org"}' http://${headers.host}/explain`,
    );
  }
  const [type = ""] = (headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/json")
    throw new RequestError(415, "the content type of a question is application/json");
}

/** Without port; `undefined` for none, or one that is not well-formed. */
function hostOf(header: string | undefined): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d{1,5})?$/i.exec(header ?? "")?.[1];
}
