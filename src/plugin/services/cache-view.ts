/** What a plugin that keeps answers can show of them, and what an operator may have it forget. */
import type { Name } from "../../dns/name.ts";
import { ServiceKey } from "../contract/service.ts";

export interface CacheView {
  /** Zones whose answers are kept, as text. */
  readonly zones: readonly string[];
  readonly entries: number;
  /** Octets that the entries take, and may take at the most. */
  readonly octets: number;
  readonly maxOctets: number;
  /** Answers to questions for a name and for names below it: `most` at the most. */
  look(name: Name, most: number): CachedAnswer[];
  /**
   * Forgets answers, in portions where they are many.
   * @param below whether those for names below it go as well
   * @param type of the question, every type unless given
   * @returns how many there were
   */
  forget(name: Name, below: boolean, type?: number): Promise<number>;
}

export interface CachedAnswer {
  readonly name: Name;
  readonly type: number;
  readonly class: number;
  readonly rcode: number;
  /** Seconds: what the answer was good for when it came, and what is left of that; 0 once it has expired. */
  readonly ttl: number;
  readonly remaining: number;
  /** Seconds since it came. */
  readonly age: number;
  readonly answers: number;
  /** It is kept with the denials. */
  readonly denial: boolean;
}

export const CACHE: ServiceKey<CacheView> = new ServiceKey("cache");
