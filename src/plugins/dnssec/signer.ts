/** Makes signatures, or returns them from the cache. */
import { beginSignature } from "../../dns/dnssec/rrset-signature.ts";
import {
  canonicalRrset,
  type KeyPair,
  type Name,
  type ResourceRecord,
  signatureRecord,
} from "../../dns/index.ts";
import type { Clock, CounterSlot } from "../../plugin/index.ts";
import type { SignatureStore } from "./signature-store.ts";

/** Seconds, as in CoreDNS. */
const BEFORE = 3 * 3600;
const AFTER = 8 * 86_400;
/** A signature with less time left is made again while the old one is still served. */
const RENEWAL = 2 * 86_400;
/** A signature with less time left is no longer served: caches that do not validate may keep it for as long. */
const LEAST_LEFT = 86_400;
/**
 * A signature with more time left was made before the clock was set back, and may begin in the future for validators
 * whose clock is slightly behind.
 */
const MOST_LEFT = AFTER + BEFORE / 2;

/** The original TTL in signatures. Records whose TTL counts down share one signature. */
const ORIGINAL_TTL = 3600;

/** Bound for signatures in progress and waiting. Further requests fail. */
const MOST_UNDER_WAY = 4_096;

/** Bound for renewals in progress. No client waits for one, and for a whole day the next query tries again. */
const MOST_RENEWALS = 8;

/**
 * Signatures handed to the thread pool at the same time, two for each of libuv's threads: submitting many in one turn
 * would delay everything else.
 */
const MOST_AT_THREADS = 8;

export interface SignerCounters {
  readonly hits: CounterSlot;
  readonly misses: CounterSlot;
}

/** Called when signatures are ready. */
export interface SignatureWaiter {
  /**
   * One signature is ready or, with `fault`, has failed. This should do nothing costly: many may wait for the same
   * one.
   */
  settled(fault: Error | undefined): void;
}

/** More signatures are requested than can be made. */
export class SignerOverloadedError extends Error {
  override readonly name = "SignerOverloadedError";

  constructor() {
    super(`more than ${MOST_UNDER_WAY} signatures are in progress`);
  }
}

/** The RRSIG record of a signature in progress. */
export class LateSignature {
  readonly #rrset: readonly ResourceRecord[];
  readonly #key: KeyPair;
  readonly #making: Making;

  constructor(rrset: readonly ResourceRecord[], key: KeyPair, making: Making) {
    this.#rrset = rrset;
    this.#key = key;
    this.#making = making;
  }

  /** @throws Error before the signature is ready */
  get record(): ResourceRecord {
    const { facts, signature } = this.#making;
    if (signature === undefined) throw new Error("the signature is not ready");
    return signatureRecord(this.#rrset, this.#key, facts, signature);
  }
}

export class Signer {
  readonly #store: SignatureStore;
  readonly #clock: Clock;
  readonly #onStored: () => void;
  /** By the digest of the signed data. */
  readonly #underWay = new Map<string, Making>();
  #renewals = 0;
  #atThreads = 0;
  /** Signatures that wait for the thread pool, as a list. */
  #first: Making | undefined;
  #last: Making | undefined;

  constructor(store: SignatureStore, clock: Clock, onStored: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#onStored = onStored;
  }

  /**
   * @param waiter called in a later turn of the event loop, if at all @returns the record itself if the signature is
   * cached @throws SignerOverloadedError
   */
  sign(
    rrset: readonly ResourceRecord[],
    zone: Name,
    key: KeyPair,
    counters: SignerCounters,
    waiter: SignatureWaiter,
  ): ResourceRecord | LateSignature {
    const records = canonicalRrset(rrset, ORIGINAL_TTL);
    const digest = this.#store.digest(records, zone.folded, key.tag);
    const place = this.#store.find(digest);
    const now = Math.floor(this.#clock.wallTime() / 1000);
    if (place >= 0) {
      const expiration = this.#store.expiration(place);
      const left = expiration - now;
      if (left > LEAST_LEFT && left <= MOST_LEFT) {
        counters.hits.increment();
        const record = signatureRecord(rrset, key, timesOf(zone, expiration), this.#store.signature(place));
        if (left < RENEWAL) this.#renew({ rrset, records, digest, key, facts: timesOf(zone, now + AFTER) });
        return record;
      }
    }
    counters.misses.increment();
    const making = this.#make({ rrset, records, digest, key, facts: timesOf(zone, now + AFTER) });
    making.waiting.push(waiter);
    return new LateSignature(rrset, key, making);
  }

  #renew(order: SignatureOrder): void {
    if (this.#renewals >= MOST_RENEWALS || this.#underWay.size >= MOST_UNDER_WAY) return;
    const making = this.#make(order);
    if (making.isRenewal) return;
    making.isRenewal = true;
    this.#renewals++;
  }

  /** @throws SignerOverloadedError */
  #make(order: SignatureOrder): Making {
    const text = order.digest.toString("latin1");
    const known = this.#underWay.get(text);
    if (known !== undefined) return known;
    if (this.#underWay.size >= MOST_UNDER_WAY) throw new SignerOverloadedError();
    const making = new Making(order, text);
    this.#underWay.set(text, making);
    if (this.#atThreads < MOST_AT_THREADS) this.#begin(making);
    else {
      if (this.#last === undefined) this.#first = making;
      else this.#last.following = making;
      this.#last = making;
    }
    return making;
  }

  #begin(making: Making): void {
    const { rrset, records, key } = making.order;
    this.#atThreads++;
    beginSignature(rrset, records, key, making.facts, (error, signature) => {
      this.#atThreads--;
      this.#beginNext();
      this.#end(making, error ?? undefined, signature);
    });
  }

  #beginNext(): void {
    const next = this.#first;
    if (next === undefined) return;
    this.#first = next.following;
    next.following = undefined;
    if (this.#first === undefined) this.#last = undefined;
    this.#begin(next);
  }

  #end(making: Making, fault: Error | undefined, signature: Uint8Array): void {
    this.#underWay.delete(making.text);
    if (making.isRenewal) this.#renewals--;
    if (fault === undefined) {
      making.signature = signature;
      this.#store.add(making.order.digest, signature, making.facts.expiration);
      this.#onStored();
    }
    for (const waiter of making.waiting) waiter.settled(fault);
  }
}

/** The data to sign, and the key. */
interface SignatureOrder {
  readonly rrset: readonly ResourceRecord[];
  /** The records in canonical form. */
  readonly records: Uint8Array;
  readonly digest: Buffer;
  readonly key: KeyPair;
  readonly facts: ReturnType<typeof timesOf>;
}

/** A signature in progress or waiting. */
class Making {
  readonly order: SignatureOrder;
  /** The digest, which is its key in the table. */
  readonly text: string;
  readonly waiting: SignatureWaiter[] = [];
  signature: Uint8Array | undefined;
  isRenewal = false;
  /** The next one that waits for the thread pool. */
  following: Making | undefined;

  constructor(order: SignatureOrder, text: string) {
    this.order = order;
    this.text = text;
  }

  get facts(): SignatureOrder["facts"] {
    return this.order.facts;
  }
}

/** The times follow from the expiration, so only that is stored. */
function timesOf(signer: Name, expiration: number) {
  return { signer, originalTtl: ORIGINAL_TTL, expiration, inception: expiration - AFTER - BEFORE };
}
