/** Reads the query to be explained from a request's body. */
import { parseClass } from "../../dns/numbers.ts";
import { parseRecordType } from "../../dns/type-names.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { type ExplainQuestion, QUERY_FLAGS, type QueryFlag } from "../../plugin/contract/explanation.ts";
import { badRequest, optionalText, readObject } from "./body.ts";

const QUESTION_MEMBERS = ["name", "type", "class", "client", "transport", "listener", "flags"];

/** @throws RequestError */
export function readQuestion(body: string): ExplainQuestion {
  const request = readObject(body, QUESTION_MEMBERS);
  const name = optionalText(request, "name");
  if (name === undefined) throw badRequest('"name" is missing');
  const type = parseRecordType((optionalText(request, "type") ?? "A").toUpperCase());
  if (type === undefined) throw badRequest(`"type": ${optionalText(request, "type")} is not a record type`);
  const className = optionalText(request, "class") ?? "IN";
  const queryClass = parseClass(className);
  if (queryClass === undefined) throw badRequest(`"class": ${className} is not a class`);
  const client = optionalText(request, "client");
  if (client !== undefined && parseIpAddress(client) === undefined)
    throw badRequest(`"client": ${client} is not an IP address`);
  const transport = optionalText(request, "transport") ?? "udp";
  if (transport !== "udp" && transport !== "tcp") throw badRequest('"transport" is udp or tcp');
  const listener = optionalText(request, "listener");
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

function readFlags(value: unknown): QueryFlag[] {
  if (!Array.isArray(value)) throw badRequest('"flags" is a list');
  return value.map((flag) => {
    const known = QUERY_FLAGS.find((each) => each === flag);
    if (known === undefined) throw badRequest(`"flags" may hold ${QUERY_FLAGS.join(", ")}`);
    return known;
  });
}
