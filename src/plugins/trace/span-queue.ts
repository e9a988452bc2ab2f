/**
 * Traces that wait to be sent, as bytes in one ring of bounded size. New traces evict the oldest: when a collector is
 * back, the last minutes matter most.
 */

const FIRST_SIZE = 64 * 1024;
/** Before each trace: its length, and its number of spans. */
const HEAD = 8;

export interface SpanBatch {
  readonly traces: readonly Uint8Array[];
  readonly spans: number;
}

export class SpanQueue {
  /** Number of waiting spans. */
  spans = 0;
  /** Number of waiting bytes. */
  octets = 0;
  readonly #maxOctets: number;
  readonly #maxSpans: number;
  #ring = new Uint8Array(FIRST_SIZE);
  #first = 0;

  constructor(maxOctets: number, maxSpans: number) {
    this.#maxOctets = maxOctets;
    this.#maxSpans = maxSpans;
  }

  /** @returns how many spans were dropped, old ones or these */
  add(trace: Uint8Array, spans: number): number {
    const needed = HEAD + trace.length;
    if (needed > this.#maxOctets || spans > this.#maxSpans) return spans;
    let lost = 0;
    while (this.octets + needed > this.#maxOctets || this.spans + spans > this.#maxSpans)
      lost += this.#drop();
    if (this.octets + needed > this.#ring.length) this.#grow(this.octets + needed);
    const head = new DataView(new ArrayBuffer(HEAD));
    head.setUint32(0, trace.length);
    head.setUint32(4, spans);
    this.#write(new Uint8Array(head.buffer));
    this.#write(trace);
    this.spans += spans;
    return lost;
  }

  /** Takes the oldest traces with at most `maxSpans` spans, but at least one trace. */
  take(maxSpans: number): SpanBatch {
    const traces: Uint8Array[] = [];
    let spans = 0;
    while (this.octets > 0) {
      const next = this.#head();
      if (spans > 0 && spans + next.spans > maxSpans) break;
      this.#skip(HEAD);
      traces.push(this.#read(0, next.length));
      this.#skip(next.length);
      this.spans -= next.spans;
      spans += next.spans;
    }
    return { traces, spans };
  }

  #drop(): number {
    const { length, spans } = this.#head();
    this.#skip(HEAD + length);
    this.spans -= spans;
    return spans;
  }

  #head(): { readonly length: number; readonly spans: number } {
    const head = new DataView(this.#read(0, HEAD).buffer);
    return { length: head.getUint32(0), spans: head.getUint32(4) };
  }

  #skip(octets: number): void {
    this.#first = (this.#first + octets) % this.#ring.length;
    this.octets -= octets;
  }

  /** A copy of `length` bytes, `offset` after the first waiting byte. */
  #read(offset: number, length: number): Uint8Array {
    const copy = new Uint8Array(length);
    const at = (this.#first + offset) % this.#ring.length;
    const whole = this.#ring.subarray(at, at + length);
    copy.set(whole);
    if (whole.length < length) copy.set(this.#ring.subarray(0, length - whole.length), whole.length);
    return copy;
  }

  #write(octets: Uint8Array): void {
    const at = (this.#first + this.octets) % this.#ring.length;
    const whole = octets.subarray(0, this.#ring.length - at);
    this.#ring.set(whole, at);
    this.#ring.set(octets.subarray(whole.length), 0);
    this.octets += octets.length;
  }

  #grow(needed: number): void {
    const size = Math.min(this.#maxOctets, Math.max(needed, 2 * this.#ring.length));
    const larger = new Uint8Array(size);
    larger.set(this.#read(0, this.octets));
    this.#ring = larger;
    this.#first = 0;
  }
}
