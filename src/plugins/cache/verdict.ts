/** Classifies a reply of the rest of the chain (docs/spec/coredns-behaviour.md#kinds-of-replies). */
import { Rcode } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import { WireError } from "../../dns/wire-reader.ts";
import type { Query, Reply } from "../../plugin/index.ts";
import type { Asked } from "../../plugin/message/asked.ts";
import {
  authorityHolds,
  minimalTtl,
  type ResponseType,
  responseType,
} from "../../plugin/query/response-type.ts";
import { reachesType } from "./cname-chain.ts";
import type { CacheSettings, TtlLimits } from "./settings.ts";

export interface Verdict {
  /**
   * The kind of the reply (docs/spec/coredns-behaviour.md#kinds-of-replies), except that it is NODATA for a chain of
   * CNAMEs that ends without the type asked for.
   */
  readonly type: ResponseType;
  /** The TTL in seconds for all records of the reply, and for the entry. */
  readonly ttl: number;
  /** Whether the reply may be cached, if it is for the question that was sent. */
  readonly storable: boolean;
  /** Which of the two caches it belongs to. */
  readonly denial: boolean;
  /** Whether the reply is for the question that was sent. */
  readonly sameQuestion: boolean;
  /** NOERROR with records of the type asked for. */
  readonly answers: boolean;
  /** Whether the reply may replace a stale answer. */
  readonly sound: boolean;
}

/**
 * Judges a reply. @param asked the query that went to the rest of the chain @param wallTime milliseconds since 1970,
 * to check the validity of signatures
 */
export function judge(reply: Reply, asked: Query, settings: CacheSettings, wallTime: number): Verdict {
  const { sections } = reply;
  let type = typeOf(reply, wallTime);
  let answers = false;
  let broken = false;
  if (type === "NOERROR" && sections.answerCount > 0) {
    answers = reachesType(sections, asked);
    if (!answers) {
      if (authorityHolds(sections, RecordType.SOA)) type = "NODATA";
      else broken = true;
    }
  }
  const sameQuestion = reply.query === asked || equalQuestions(reply.query, asked);
  const unclassed = type === "OTHERERROR" || type === "META" || type === "UPDATE";
  const unproven = type === "NXDOMAIN" && !authorityHolds(sections, RecordType.SOA);
  return {
    type,
    ttl: ttlOf(reply, type, settings),
    storable: !(reply.truncated || unclassed || unproven || broken),
    denial: type === "NXDOMAIN" || type === "NODATA" || type === "SERVERERROR",
    sameQuestion,
    answers,
    sound:
      (reply.rcode === Rcode.NOERROR || reply.rcode === Rcode.NXDOMAIN) &&
      !reply.truncated &&
      !unclassed &&
      sameQuestion,
  };
}

function typeOf(reply: Reply, wallTime: number): ResponseType {
  try {
    return responseType(reply, wallTime);
  } catch (error) {
    // A signature that does not decode: the reply is passed on unchanged, but not cached.
    if (error instanceof WireError) return "OTHERERROR";
    throw error;
  }
}

function ttlOf(reply: Reply, type: ResponseType, settings: CacheSettings): number {
  if (type === "SERVERERROR") return settings.servfailTtl;
  const limits = type === "NXDOMAIN" || type === "NODATA" ? settings.denial : settings.success;
  return clampTtl(minimalTtl(reply, type, limits.maxTtl), limits);
}

function clampTtl(ttl: number, { minTtl, maxTtl }: TtlLimits): number {
  return Math.min(Math.max(ttl, minTtl), maxTtl);
}

function equalQuestions(one: Asked, other: Asked): boolean {
  return one.type === other.type && one.class === other.class && one.name.equals(other.name);
}
