/** The entries of a cache for display, and their removal by an operator. */
import type { Name } from "../../dns/name.ts";
import { ServiceKey } from "../contract/service.ts";

export interface CacheView {
  /** Zones whose answers are cached, as text. */
  readonly zones: readonly string[];
  readonly entries: number;
  /** Octets of the entries, and their limit. */
  readonly octets: number;
  readonly maxOctets: number;
  /** Answers to questions for a name and for names below it, `most` at most. */
  look(name: Name, most: number): CachedAnswer[];
  /**
   * Removes answers, in portions if there are many.
   * @param below whether to include names below it
   * @param type of the question, every type unless given
   * @returns the number of removed answers
   */
  forget(name: Name, below: boolean, type?: number): Promise<number>;
}

export interface CachedAnswer {
  readonly name: Name;
  readonly type: number;
  readonly class: number;
  readonly rcode: number;
  /** Seconds: the TTL on arrival, and the rest of it; 0 once it has expired. */
  readonly ttl: number;
  readonly remaining: number;
  /** Seconds since its arrival. */
  readonly age: number;
  readonly answers: number;
  /** Whether it is stored with the denials. */
  readonly denial: boolean;
}

export const CACHE: ServiceKey<CacheView> = new ServiceKey("cache");
