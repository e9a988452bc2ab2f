/**
 * The wrappers around an object in a watch, taken off in one pass: a cluster in motion sends hundreds of events a second, and each stands in
 * four messages (WatchEvent, RawExtension, Unknown and TypeMeta in kubernetes.proto) of which two short texts are wanted.
 *
 * One object reads all events of a watch, and so do those that it is handed to. An object for each event would be garbage when V8 collects the whole
 * heap to save memory. V8 then forgets the shape of such objects, and drops the compiled code of every function that reads one.
 */
import { Source } from "./read-message.ts";
import type { TextPool } from "./text-pool.ts";

/** Fields of which all are length-delimited: their number times 8, and 2. */
const FIRST = 0x0a;
const SECOND = 0x12;
/** `k8s` and an octet of zero, in the order of the machine that reads them one after the other. */
const PREFIX = [0x6b, 0x38, 0x73, 0] as const;

export class EventFrame {
  /** At the beginning of the object after {@link open}, if there is one. */
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

  /** @param texts those of former events */
  constructor(texts: TextPool) {
    this.source = new Source(new Uint8Array(), texts);
  }

  /** Reads the wrappers of an event. The caller closes the source. @throws ProtobufError */
  open(octets: Uint8Array): void {
    const { source } = this;
    source.open(octets);
    this.type = "";
    this.kind = "";
    this.start = 0;
    this.end = 0;
    this.isEnveloped = false;
    const end = source.octets.length;
    while (source.at < end) {
      const tag = source.varint();
      if (tag === FIRST) this.type = source.text(end);
      else if (tag === SECOND) this.#readExtension(source.length(end));
      else source.skip(tag & 7, end);
    }
    source.requireEnd(end);
    source.at = this.start;
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
