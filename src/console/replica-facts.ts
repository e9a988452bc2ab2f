/** Reads a replica's report for the fleet page. The replica may be of another version, or not a console at all. */
import { isObject, member, textMember } from "../kubernetes/objects/json.ts";
import type { NowView, ReplicaNow, ReplicaView } from "./api-types.ts";

/** A host name or a version: no bidirectional or invisible characters. */
const PLAIN_WORD = /^[\x21-\x7e]{1,256}$/;
const DIGEST = /^[0-9a-f]{0,128}$/;

export function replicaNow({
  time,
  version,
  hostname,
  startedAt,
  threads,
  rate,
  ...now
}: NowView): ReplicaNow {
  const { queries, hitRatio, p50, p99 } = now.minute;
  const { resident, limit } = now.memory;
  return {
    ...{ time, version, hostname, startedAt, threads, rate },
    minute: { queries, hitRatio, p50, p99 },
    memory: { resident, limit },
  };
}

/** @returns `undefined` if a member is missing or invalid */
export function replicaView(answer: unknown): ReplicaView | undefined {
  const now = member(answer, "now");
  const sha512 = textMember(answer, "sha512");
  const hostname = textMember(now, "hostname");
  const version = textMember(now, "version");
  const minute = member(now, "minute");
  const memory = member(now, "memory");
  const [time, startedAt, threads, rate] = numbersOf(now, "time", "startedAt", "threads", "rate");
  const [queries] = numbersOf(minute, "queries");
  const [resident] = numbersOf(memory, "resident");
  if (!PLAIN_WORD.test(hostname) || !PLAIN_WORD.test(version) || !DIGEST.test(sha512)) return undefined;
  if (time === undefined || startedAt === undefined || threads === undefined || rate === undefined)
    return undefined;
  if (queries === undefined || resident === undefined) return undefined;
  const [hitRatio = null, p50 = null, p99 = null] = numbersOf(minute, "hitRatio", "p50", "p99");
  const [limit = null] = numbersOf(memory, "limit");
  return {
    now: {
      ...{ time, version, hostname, startedAt, threads, rate },
      minute: { queries, hitRatio, p50, p99 },
      memory: { resident, limit },
    },
    sha512,
  };
}

/** Non-negative numbers in the exact range. */
function numbersOf(value: unknown, ...names: readonly string[]): (number | undefined)[] {
  return names.map((name) => {
    const found = isObject(value) ? value[name] : undefined;
    return typeof found === "number" && found >= 0 && found <= Number.MAX_SAFE_INTEGER ? found : undefined;
  });
}
