/** The body of a request -> the question in it. */
import { parseClass, parseRecordType } from "../../dns/index.ts";
import { parseIpAddress } from "../../lib/ip-address.ts";
import { type ExplainQuestion, QUERY_FLAGS, type QueryFlag } from "../../plugin/index.ts";

/** A request that cannot be answered; the message says what is wrong with it. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  /** Of HTTP. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const QUESTION_MEMBERS = ["name", "type", "class", "client", "transport", "listener", "flags"];

/** @throws RequestError */
export function readQuestion(body: string): ExplainQuestion {
  const request = readObject(body, QUESTION_MEMBERS);
  const name = text(request, "name");
  if (name === undefined) throw bad('"name" is missing');
  const type = parseRecordType((text(request, "type") ?? "A").toUpperCase());
  if (type === undefined) throw bad(`"type": ${text(request, "type")} is no type of records`);
  const className = text(request, "class") ?? "IN";
  const queryClass = parseClass(className);
  if (queryClass === undefined) throw bad(`"class": ${className} is no class`);
  const client = text(request, "client");
  if (client !== undefined && parseIpAddress(client) === undefined)
    throw bad(`"client": ${client} is not an IP address`);
  const transport = text(request, "transport") ?? "udp";
  if (transport !== "udp" && transport !== "tcp") throw bad('"transport" is udp or tcp');
  const listener = text(request, "listener");
  const { flags } = request;
  return {
    name: name.endsWith(".") ? name : `${name}.`,
    type,
    class: queryClass,
    transport,
    ...(client !== undefined && { client }),
    ...(listener !== undefined && { listener }),
    ...(flags !== undefined && { flags: readFlags(flags) }),
  };
}

export interface PodRequest {
  readonly namespace: string;
  readonly name: string;
}

/** @throws RequestError */
export function readPodRequest(body: string): PodRequest {
  const request = readObject(body, ["namespace", "name"]);
  const namespace = text(request, "namespace");
  const name = text(request, "name");
  if (namespace === undefined || name === undefined) throw bad('"namespace" and "name" are needed');
  return { namespace, name };
}

function readFlags(value: unknown): QueryFlag[] {
  if (!Array.isArray(value)) throw bad('"flags" is a list');
  return value.map((flag) => {
    const known = QUERY_FLAGS.find((each) => each === flag);
    if (known === undefined) throw bad(`"flags" may hold ${QUERY_FLAGS.join(", ")}`);
    return known;
  });
}

type Members = Readonly<Record<string, unknown>>;

function readObject(body: string, known: readonly string[]): Members {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw bad("the body is not valid JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad("the body is no JSON object");
  for (const member of Object.keys(value))
    if (!known.includes(member)) throw bad(`unknown member "${member.slice(0, 40)}": ${known.join(", ")}`);
  return { ...value };
}

function text(members: Members, name: string): string | undefined {
  const value = members[name];
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value.length > MAX_TEXT) throw bad(`"${name}" is a short text`);
  return value;
}

/** A name may have 255 octets, each written as \DDD. */
const MAX_TEXT = 1_024;

function bad(message: string): RequestError {
  return new RequestError(400, message);
}
