/** What a replica says of itself, as far as the fleet shows it. It may be of another version, or no console at all. */
import { isObject, member, textMember } from "../kubernetes/objects/json.ts";
import type { ReplicaNow } from "./api-types.ts";

/** Of a host name or a version. */
const LONGEST_TEXT = 256;

/** @returns `undefined` where something is missing, or is not what it is here */
export function replicaNow(now: unknown): ReplicaNow | undefined {
  const hostname = textMember(now, "hostname");
  const version = textMember(now, "version");
  const minute = member(now, "minute");
  const memory = member(now, "memory");
  const [time, startedAt, threads, rate] = numbersOf(now, "time", "startedAt", "threads", "rate");
  const [queries] = numbersOf(minute, "queries");
  const [resident] = numbersOf(memory, "resident");
  if (hostname === "" || version === "" || hostname.length > LONGEST_TEXT || version.length > LONGEST_TEXT)
    return undefined;
  if (time === undefined || startedAt === undefined || threads === undefined || rate === undefined)
    return undefined;
  if (queries === undefined || resident === undefined) return undefined;
  const [hitRatio = null, p50 = null, p99 = null] = numbersOf(minute, "hitRatio", "p50", "p99");
  const [limit = null] = numbersOf(memory, "limit");
  return {
    ...{ time, version, hostname, startedAt, threads, rate },
    minute: { queries, hitRatio, p50, p99 },
    memory: { resident, limit },
  };
}

function numbersOf(value: unknown, ...names: readonly string[]): (number | undefined)[] {
  return names.map((name) => {
    const found = isObject(value) ? value[name] : undefined;
    return typeof found === "number" && Number.isFinite(found) ? found : undefined;
  });
}
