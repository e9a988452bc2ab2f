/** The value of `--probe`: name, server and interval (docs/spec/kube-dns.md#sidecar). */
import { Name, NameError } from "../../dns/name.ts";

export interface ProbeSpec {
  /** Part of metric names and of a path. */
  readonly label: string;
  readonly host: string;
  readonly port: number;
  readonly name: Name;
  /** Milliseconds. */
  readonly interval: number;
  /** Number of the type. */
  readonly type: number;
}

/** An invalid probe. The message is one line. */
export class ProbeError extends Error {
  override readonly name = "ProbeError";
}

const TYPES: ReadonlyMap<string, number> = new Map([
  ["A", 1],
  ["AAAA", 28],
  ["ANY", 255],
  ["SRV", 33],
]);

/**
 * Reads `<label>,<server>,<dns name>[,<interval seconds>][,<type>]`.
 * @throws ProbeError
 */
export function parseProbe(text: string): ProbeSpec {
  const fields = text.split(",");
  if (fields.length < 3 || fields.length > 5)
    throw new ProbeError(`invalid format to --probe: '${text}' has ${fields.length} fields, not 3 to 5`);
  const [label = "", server = "", name = "", interval = "5", type = "ANY"] = fields;
  if (!/^[a-zA-Z0-9_]+$/.test(label))
    throw new ProbeError(`label must be of format ^[a-zA-Z0-9_]+$, not '${label}'`);
  if (!/^[1-9]\d*$/.test(interval))
    throw new ProbeError(`invalid interval '${interval}': a number of seconds is needed`);
  const number = TYPES.get(type);
  if (number === undefined)
    throw new ProbeError(`invalid type '${type}': one of ${[...TYPES.keys()].join(", ")}`);
  const { host, port } = readServer(server);
  return { label, host, port, name: readName(name), interval: Number(interval) * 1000, type: number };
}

/** A server without a colon gets port 53; IPv6 needs brackets. */
function readServer(text: string): { readonly host: string; readonly port: number } {
  const [, bracketed, plain, port = "53"] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || Number(port) > 65_535)
    throw new ProbeError(`invalid server '${text}': an address is needed, with or without port`);
  return { host, port: Number(port) };
}

function readName(text: string): Name {
  try {
    return Name.parse(text);
  } catch (error) {
    if (error instanceof NameError) throw new ProbeError(error.message);
    throw error;
  }
}
