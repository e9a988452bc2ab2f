/** What a replica says of itself, as far as the fleet shows it. It may be of another version, or no console at all. */
import { isObject, member, textMember } from "../kubernetes/objects/json.ts";
import type { NowView, ReplicaNow, ReplicaView } from "./api-types.ts";

/** Of a host name or a version: nothing that turns the text around it, or is not seen. */
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

/** @returns `undefined` where something is missing, or is not what it is here */
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

/** None of them is ever negative, nor more than can be counted. */
function numbersOf(value: unknown, ...names: readonly string[]): (number | undefined)[] {
  return names.map((name) => {
    const found = isObject(value) ? value[name] : undefined;
    return typeof found === "number" && found >= 0 && found <= Number.MAX_SAFE_INTEGER ? found : undefined;
  });
}
