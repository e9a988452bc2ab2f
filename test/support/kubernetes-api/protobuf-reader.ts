/** protobuf -> JSON, for objects that clients send: kubectl does for the kinds that it knows. */
import { badRequest } from "./api-error.ts";
import { type Field, fieldsOf, PREFIX } from "./protobuf.ts";

/** @throws ApiError for what is no enveloped object of a known kind */
export function decodeObject(octets: Buffer): Record<string, unknown> {
  if (!octets.subarray(0, PREFIX.length).equals(PREFIX)) throw badRequest("not an object in protobuf");
  const envelope = readFields(octets.subarray(PREFIX.length));
  const [apiVersion, kind] = [1, 2].map((number) => {
    const type = envelope.get(1)?.[0];
    return Buffer.isBuffer(type) ? String(readFields(type).get(number)?.[0] ?? "") : "";
  });
  const raw = envelope.get(2)?.[0];
  if (kind === undefined || !Buffer.isBuffer(raw)) throw badRequest("an envelope without an object");
  return { apiVersion, kind, ...decodeMessage(kind, raw) };
}

function decodeMessage(name: string, octets: Buffer): Record<string, unknown> {
  const values = readFields(octets);
  const message: Record<string, unknown> = {};
  for (const [key, field] of fieldsOf(name)) {
    const found = values.get(field.number);
    if (found === undefined) continue;
    const decoded = found.map((value) => decodeValue(field, value));
    if (field.type === "labels") message[key] = Object.assign({}, ...decoded);
    // Go writes empty texts and zeros where nothing was given.
    else if (field.isRepeated) message[key] = decoded;
    else if (decoded[0] !== "" && decoded[0] !== 0) message[key] = decoded[0];
  }
  return message;
}

function decodeValue({ type, message }: Field, value: Buffer | number): unknown {
  if (typeof value === "number") return type === "bool" ? value === 1 : value;
  switch (type) {
    case "labels": {
      const entry = readFields(value);
      return { [String(entry.get(1)?.[0] ?? "")]: String(entry.get(2)?.[0] ?? "") };
    }
    case "message":
      return decodeMessage(message, value);
    case "time": {
      const seconds = readFields(value).get(1)?.[0];
      return typeof seconds === "number" ? new Date(seconds * 1000).toISOString() : "";
    }
    case "intOrString": {
      const fields = readFields(value);
      return fields.get(1)?.[0] === 1 ? String(fields.get(3)?.[0] ?? "") : Number(fields.get(2)?.[0] ?? 0);
    }
    default:
      return value.toString();
  }
}

/** The values of each field: a number, or octets. */
function readFields(octets: Buffer): Map<number, (Buffer | number)[]> {
  const fields = new Map<number, (Buffer | number)[]>();
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const octet = octets[at++];
      if (octet === undefined) throw badRequest("protobuf that breaks off");
      value += (octet & 0x7f) * 2 ** shift;
      if (octet < 0x80) return value;
    }
  };
  while (at < octets.length) {
    const tag = varint();
    let value: Buffer | number = varint();
    if (tag % 8 === 2) {
      const end = at + value;
      value = octets.subarray(at, end);
      at = end;
    } else if (tag % 8 !== 0) throw badRequest(`protobuf of wire type ${tag % 8}`);
    const number = Math.floor(tag / 8);
    fields.set(number, [...(fields.get(number) ?? []), value]);
  }
  return fields;
}
