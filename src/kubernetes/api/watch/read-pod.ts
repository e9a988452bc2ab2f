/** One pod out of the API, whole: what its resolver is like stands in no list that is kept. */
import { textMember } from "../../objects/json.ts";
import { ApiContentError, ApiStatusError, explainFailure } from "../access/api-error.ts";
import type { ApiClient } from "../client/api-client.ts";
import { formatOf } from "../client/codec.ts";
import { readWhole } from "../client/frames.ts";

/** The pod cannot be read; the message says why, for the operator. */
export class PodReadError extends Error {
  override readonly name = "PodReadError";
  /** The service account may not read pods. */
  readonly isForbidden: boolean;

  constructor(message: string, isForbidden: boolean, cause: unknown) {
    super(message, { cause });
    this.isForbidden = isForbidden;
  }
}

/** The API refuses what is larger than some 3 MiB itself. */
const MAX_POD_SIZE = 4 * 1024 * 1024;

/**
 * @returns the object as in JSON, `undefined` where there is no such pod
 * @throws PodReadError, or the reason of the signal
 */
export async function readPod(
  client: Pick<ApiClient, "get" | "server">,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<unknown> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  try {
    const { contentType, body } = await client.get(path, "application/json", signal);
    const octets = await readWhole(body, MAX_POD_SIZE);
    if (formatOf(contentType) !== "json") throw new ApiContentError("the answer is not JSON");
    return parsePod(octets);
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const code = error instanceof ApiStatusError ? error.code : 0;
    if (code === 404) return undefined;
    const reason =
      code === 403
        ? `no right to read it (403 Forbidden): the verb get on resource "pods" is needed`
        : explainFailure(error, { verb: "list", resource: "pods", group: "" });
    throw new PodReadError(`pod ${namespace}/${name}: ${reason}`, code === 403, error);
  }
}

function parsePod(octets: Uint8Array): unknown {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(octets).toString());
  } catch {
    throw new ApiContentError("the answer is not valid JSON");
  }
  if (textMember(value, "kind") !== "Pod") throw new ApiContentError("the answer is not a Pod");
  return value;
}
