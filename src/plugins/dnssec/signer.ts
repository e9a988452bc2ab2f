/** Makes signatures, or has them already. */
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

/** Seconds: as CoreDNS has them. */
const BEFORE = 3 * 3600;
const AFTER = 8 * 86_400;
/** A signature with less time left is made anew while the old one is still given out. */
const RENEWAL = 2 * 86_400;
/** One with less left is given out no more: caches that know nothing of DNSSEC may keep it for as long. */
const LEAST_LEFT = 86_400;
/** One with more left is from before the clock was set back, and may begin in the future for whoever is a little behind. */
const MOST_LEFT = AFTER + BEFORE / 2;

/** TTL that signatures are made for. Records that count down on their way keep one signature. */
const ORIGINAL_TTL = 3600;

/** Signatures that are made at one time, and that wait for it. Whoever comes then gets none. */
const MOST_UNDER_WAY = 4_096;

/** Of these, renewals. Nobody waits for them: whoever asks next tries again, for a whole day. */
const MOST_RENEWALS = 8;

/** Signatures that the threads have at one time, two for each of libuv's: to hand over many in one turn would hold up all others. */
const MOST_AT_THREADS = 8;

export interface SignerCounters {
  readonly hits: CounterSlot;
  readonly misses: CounterSlot;
}

/** Waits for signatures. */
export interface SignatureWaiter {
  /** One of them is there, or, with a fault, will never be. Nothing costly should be done here: many may wait for the same one. */
  settled(fault: Error | undefined): void;
}

/** More signatures are asked for than can be made. */
export class SignerOverloadedError extends Error {
  override readonly name = "SignerOverloadedError";

  constructor() {
    super(`more than ${MOST_UNDER_WAY} signatures are being made`);
  }
}

/** The RRSIG record of a signature that is being made. */
export class LateSignature {
  readonly #rrset: readonly ResourceRecord[];
  readonly #key: KeyPair;
  readonly #making: Making;

  constructor(rrset: readonly ResourceRecord[], key: KeyPair, making: Making) {
    this.#rrset = rrset;
    this.#key = key;
    this.#making = making;
  }

  /** @throws Error before the signature is there */
  get record(): ResourceRecord {
    const { facts, signature } = this.#making;
    if (signature === undefined) throw new Error("the signature is not there yet");
    return signatureRecord(this.#rrset, this.#key, facts, signature);
  }
}

export class Signer {
  readonly #store: SignatureStore;
  readonly #clock: Clock;
  readonly #onStored: () => void;
  /** By the digest of what is signed. */
  readonly #underWay = new Map<string, Making>();
  #renewals = 0;
  #atThreads = 0;
  /** Those that wait for the threads, in a chain. */
  #first: Making | undefined;
  #last: Making | undefined;

  constructor(store: SignatureStore, clock: Clock, onStored: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#onStored = onStored;
  }

  /**
   * @param waiter told in a later turn of the event loop, if at all
   * @returns the record at once where the signature is known
   * @throws SignerOverloadedError
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

/** What is to be signed, and with which key. */
interface SignatureOrder {
  readonly rrset: readonly ResourceRecord[];
  /** The same in canonical form. */
  readonly records: Uint8Array;
  readonly digest: Buffer;
  readonly key: KeyPair;
  readonly facts: ReturnType<typeof timesOf>;
}

/** A signature that is being made, or waits for that. */
class Making {
  readonly order: SignatureOrder;
  /** The digest, as it stands in the table. */
  readonly text: string;
  readonly waiting: SignatureWaiter[] = [];
  signature: Uint8Array | undefined;
  isRenewal = false;
  /** The one behind it that waits for the threads. */
  following: Making | undefined;

  constructor(order: SignatureOrder, text: string) {
    this.order = order;
    this.text = text;
  }

  get facts(): SignatureOrder["facts"] {
    return this.order.facts;
  }
}

/** The times follow from the end, so that the end alone has to be kept. */
function timesOf(signer: Name, expiration: number) {
  return { signer, originalTtl: ORIGINAL_TTL, expiration, inception: expiration - AFTER - BEFORE };
}
