/** Parses the body of a request. */
import { badRequest, optionalText, readObject } from "../../console/http/body.ts";

export interface PodRequest {
  readonly namespace: string;
  readonly name: string;
}

/** @throws RequestError */
export function readPodRequest(body: string): PodRequest {
  const request = readObject(body, ["namespace", "name"]);
  const namespace = optionalText(request, "namespace");
  const name = optionalText(request, "name");
  if (namespace === undefined || name === undefined) throw badRequest('"namespace" and "name" are needed');
  return { namespace, name };
}
