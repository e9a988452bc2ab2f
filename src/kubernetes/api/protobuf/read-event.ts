/**
 * The wrappers around an object in a watch, taken off in one pass: a cluster in motion sends hundreds of events a second, and each stands in
 * four messages (WatchEvent, RawExtension, Unknown and TypeMeta in kubernetes.proto) of which two short texts are wanted.
 */
import { Source } from "./read-message.ts";
import type { TextPool } from "./text-pool.ts";

/** Fields of which all are length-delimited: their number times 8, and 2. */
const FIRST = 0x0a;
const SECOND = 0x12;
/** `k8s` and an octet of zero, in the order of the machine that reads them one after the other. */
const PREFIX = [0x6b, 0x38, 0x73, 0] as const;

export class EventFrame {
  readonly source: Source;
  /** `ADDED` */
  type = "";
  /** `Service`; empty where the event does not say. */
  kind = "";
  /** Where the object begins and ends; both 0 where there is none. */
  start = 0;
  end = 0;
  /** Whether the object stands in an envelope of Kubernetes. */
  isEnveloped = false;

  /** @throws ProtobufError */
  constructor(octets: Uint8Array, texts: TextPool) {
    const source = new Source(octets, texts);
    this.source = source;
    const end = source.octets.length;
    while (source.at < end) {
      const tag = source.varint();
      if (tag === FIRST) this.type = source.text(end);
      else if (tag === SECOND) this.#readExtension(source.length(end));
      else source.skip(tag & 7, end);
    }
    source.requireEnd(end);
  }

  #readExtension(end: number): void {
    const { source } = this;
    while (source.at < end) {
      const tag = source.varint();
      if (tag === FIRST) this.#readEnvelope(source.length(end));
      else source.skip(tag & 7, end);
    }
    source.requireEnd(end);
  }

  #readEnvelope(end: number): void {
    const { source } = this;
    this.isEnveloped = PREFIX.every((octet, at) => source.octets[source.at + at] === octet);
    if (!this.isEnveloped) {
      source.at = end;
      return;
    }
    source.at += PREFIX.length;
    while (source.at < end) {
      const tag = source.varint();
      if (tag === FIRST) this.#readTypeMeta(source.length(end));
      else if (tag === SECOND) {
        this.end = source.length(end);
        this.start = source.at;
        source.at = this.end;
      } else source.skip(tag & 7, end);
    }
    source.requireEnd(end);
  }

  #readTypeMeta(end: number): void {
    const { source } = this;
    while (source.at < end) {
      const tag = source.varint();
      if (tag === SECOND) this.kind = source.text(end);
      else source.skip(tag & 7, end);
    }
    source.requireEnd(end);
  }
}
