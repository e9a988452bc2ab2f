/** The values of SkyDNS's keys: JSON objects with the data of a name (docs/spec/kube-dns.md#items). */
import { messageOf } from "../../lib/text/message-of.ts";

export interface ServiceItem {
  /** An IP address, a host name, or empty. */
  readonly host: string;
  readonly port: number;
  /** 0 for the server's own. */
  readonly priority: number;
  /** 0 for an equal share. */
  readonly weight: number;
  readonly text: string;
  readonly mail: boolean;
  /** Seconds, 0 for the server's own. */
  readonly ttl: number;
  /** Labels to strip from the left of a name that is made from the key. */
  readonly targetStrip: number;
  readonly group: string;
}

/** An invalid value. */
export class ServiceItemError extends Error {
  override readonly name = "ServiceItemError";
  readonly key: string;

  constructor(key: string, reason: string) {
    super(`${key}: ${reason}`);
    this.key = key;
  }
}

type Reading = { -readonly [K in keyof ServiceItem]: ServiceItem[K] };

const EMPTY: ServiceItem = {
  host: "",
  port: 0,
  priority: 0,
  weight: 0,
  text: "",
  mail: false,
  ttl: 0,
  targetStrip: 0,
  group: "",
};

const MAX_TTL = 0xffff_ffff;

/**
 * Reads a value. Field names are accepted in any case. As in CoreDNS, `null` stands for an absent field, and alone for an empty
 * object.
 * @throws ServiceItemError
 */
export function readServiceItem(key: string, value: Buffer): ServiceItem {
  let json: unknown;
  try {
    json = JSON.parse(value.toString("utf8"));
  } catch (error) {
    throw new ServiceItemError(key, messageOf(error));
  }
  if (json === null) return EMPTY;
  if (typeof json !== "object" || Array.isArray(json))
    throw new ServiceItemError(key, `a JSON object was expected, not ${JSON.stringify(json).slice(0, 100)}`);
  const item: Reading = { ...EMPTY };
  for (const [name, field] of Object.entries(json)) if (field !== null) readField(item, key, name, field);
  return item;
}

function readField(item: Reading, key: string, name: string, field: unknown): void {
  switch (name.toLowerCase()) {
    case "host":
      item.host = textOf(key, name, field);
      break;
    case "text":
      item.text = textOf(key, name, field);
      break;
    case "group":
      item.group = textOf(key, name, field);
      break;
    case "port":
      item.port = integerOf(key, name, field);
      break;
    case "priority":
      item.priority = integerOf(key, name, field);
      break;
    case "weight":
      item.weight = integerOf(key, name, field);
      break;
    case "targetstrip":
      item.targetStrip = integerOf(key, name, field);
      break;
    case "ttl":
      item.ttl = integerOf(key, name, field);
      if (item.ttl < 0 || item.ttl > MAX_TTL) throw unfit(key, name, field, `from 0 to ${MAX_TTL}`);
      break;
    case "mail":
      if (typeof field !== "boolean") throw unfit(key, name, field, "true or false");
      item.mail = field;
      break;
  }
}

function textOf(key: string, name: string, field: unknown): string {
  if (typeof field !== "string") throw unfit(key, name, field, "a string");
  return field;
}

function integerOf(key: string, name: string, field: unknown): number {
  if (typeof field !== "number" || !Number.isSafeInteger(field))
    throw unfit(key, name, field, "a whole number");
  return field;
}

function unfit(key: string, name: string, field: unknown, expected: string): ServiceItemError {
  return new ServiceItemError(key, `"${name}" is ${JSON.stringify(field).slice(0, 100)}, not ${expected}`);
}

/** The JSON of an item, without empty fields, in SkyDNS's order. */
export function formatServiceItem(item: Partial<ServiceItem>): string {
  const { host, port, priority, weight, text, mail, ttl, targetStrip, group } = { ...EMPTY, ...item };
  return JSON.stringify({
    ...(host !== "" && { host }),
    ...(port !== 0 && { port }),
    ...(priority !== 0 && { priority }),
    ...(weight !== 0 && { weight }),
    ...(text !== "" && { text }),
    ...(mail && { mail }),
    ...(ttl !== 0 && { ttl }),
    ...(targetStrip !== 0 && { targetstrip: targetStrip }),
    ...(group !== "" && { group }),
  });
}
