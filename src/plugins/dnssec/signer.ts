/** Makes signatures, or has them already. */
import {
  canonicalRrset,
  type KeyPair,
  type Name,
  type ResourceRecord,
  signatureRecord,
  signRrset,
} from "../../dns/index.ts";
import { LinkedList, type Place } from "../../lib/linked-list.ts";
import type { Clock, CounterSlot } from "../../plugin/index.ts";
import type { SignatureStore } from "./signature-store.ts";

/** Seconds: as CoreDNS has them (facts 2.37). */
const BEFORE = 3 * 3600;
const AFTER = 8 * 86_400;
/** A signature with less time left is made anew while the old one is still given out. */
const RENEWAL = 2 * 86_400;

/** TTL that signatures are made for. Records that count down on their way keep one signature. */
const ORIGINAL_TTL = 3600;

/** Signatures that are made at one time, and that wait for it. Whoever comes then gets none. */
const MOST_UNDER_WAY = 4_096;

/** Signatures that the threads have at one time, two for each of libuv's: to hand over many in one turn would hold up all others. */
const MOST_AT_THREADS = 8;

export interface SignerCounters {
  readonly hits: CounterSlot;
  readonly misses: CounterSlot;
}

/** More signatures are asked for than can be made. */
export class SignerOverloadedError extends Error {
  override readonly name = "SignerOverloadedError";

  constructor() {
    super(`more than ${MOST_UNDER_WAY} signatures are being made`);
  }
}

export class Signer {
  readonly #store: SignatureStore;
  readonly #clock: Clock;
  readonly #onStored: () => void;
  /** By the digest of what is signed. */
  readonly #underWay = new Map<string, Promise<Uint8Array>>();
  #atThreadsNow = 0;
  readonly #waiting = new LinkedList<Turn>();

  constructor(store: SignatureStore, clock: Clock, onStored: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#onStored = onStored;
  }

  /** @returns the record at once where the signature is known */
  sign(
    rrset: readonly ResourceRecord[],
    zone: Name,
    key: KeyPair,
    counters: SignerCounters,
  ): ResourceRecord | Promise<ResourceRecord> {
    const records = canonicalRrset(rrset, ORIGINAL_TTL);
    const digest = this.#store.digest(records, zone.folded, key.tag);
    const place = this.#store.find(digest);
    const now = Math.floor(this.#clock.wallTime() / 1000);
    if (place >= 0) {
      const expiration = this.#store.expiration(place);
      if (expiration > now) {
        counters.hits.increment();
        const record = signatureRecord(rrset, key, timesOf(zone, expiration), this.#store.signature(place));
        if (expiration - now < RENEWAL) this.#renew(rrset, records, digest, key, zone, now);
        return record;
      }
    }
    counters.misses.increment();
    const facts = timesOf(zone, now + AFTER);
    return this.#make(rrset, records, digest, key, facts).then((signature) =>
      signatureRecord(rrset, key, facts, signature),
    );
  }

  #renew(
    rrset: readonly ResourceRecord[],
    records: Uint8Array,
    digest: Buffer,
    key: KeyPair,
    zone: Name,
    now: number,
  ): void {
    // The old one holds for two days: whoever asks next tries again.
    this.#make(rrset, records, digest, key, timesOf(zone, now + AFTER)).catch(() => undefined);
  }

  async #atThreads(sign: () => Promise<Uint8Array>): Promise<Uint8Array> {
    if (this.#atThreadsNow < MOST_AT_THREADS) this.#atThreadsNow++;
    else {
      const turn = new Turn();
      turn.place = this.#waiting.append(turn);
      await turn.come.promise;
    }
    try {
      return await sign();
    } finally {
      const next = this.#waiting.first;
      if (next?.place === undefined) this.#atThreadsNow--;
      else {
        this.#waiting.remove(next.place);
        next.come.resolve();
      }
    }
  }

  async #make(
    rrset: readonly ResourceRecord[],
    records: Uint8Array,
    digest: Buffer,
    key: KeyPair,
    facts: ReturnType<typeof timesOf>,
  ): Promise<Uint8Array> {
    // Two that are made for the same in different seconds must not share one signature.
    const text = `${digest.toString("latin1")}${facts.expiration}`;
    const known = this.#underWay.get(text);
    if (known !== undefined) return await known;
    if (this.#underWay.size >= MOST_UNDER_WAY) throw new SignerOverloadedError();
    const made = this.#atThreads(() => signRrset(rrset, records, key, facts));
    this.#underWay.set(text, made);
    try {
      const signature = await made;
      this.#store.add(digest, signature, facts.expiration);
      this.#onStored();
      return signature;
    } finally {
      this.#underWay.delete(text);
    }
  }
}

/** Of who waits for the threads. */
class Turn {
  readonly come = Promise.withResolvers<void>();
  place: Place<Turn> | undefined;
}

/** The times follow from the end, so that the end alone has to be kept. */
function timesOf(signer: Name, expiration: number) {
  return { signer, originalTtl: ORIGINAL_TTL, expiration, inception: expiration - AFTER - BEFORE };
}
