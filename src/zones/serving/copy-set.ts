/**
 * Zones that several data planes serve and one changes (`Site.feed`): the leader sends its followers each state of a zone, first as
 * a whole and then as changes, so that all have the same serials.
 */
import { setImmediate as nextImmediate } from "node:timers/promises";
import { plainData } from "../../dns/resource-record.ts";
import type { Feed } from "../../plugin/contract/site.ts";
import { RecordLog } from "../data/record-log.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { copyOfZone, soaRecord } from "../data/zone-transfer.ts";
import type { ServedZone } from "./served-zone.ts";

/** Records of a message: a thousand messages are sent in one turn of the event loop. */
const PORTION = 8;
/** Messages that the leader sends in one turn when it sends a whole zone. */
const MESSAGES = 250;

export interface PlainSoa {
  readonly ttl: number;
  readonly rdata: Uint8Array;
}

/** States of a zone are numbered by the leader, because serials may stay the same. */
export type CopyMessage =
  | { readonly kind: "begin"; readonly apex: string }
  | { readonly kind: "records"; readonly apex: string; readonly octets: Uint8Array }
  | { readonly kind: "end"; readonly apex: string; readonly state: number; readonly soa: PlainSoa }
  | {
      readonly kind: "change";
      readonly apex: string;
      readonly state: number;
      readonly from: number;
      readonly soa: PlainSoa;
      readonly removed: Uint8Array;
      readonly added: Uint8Array;
    };

/** The leader's side. */
export class ZoneCopies {
  readonly #feed: Feed;
  /** The number of its state. */
  readonly #states = new Map<ServedZone, number>();

  constructor(feed: Feed) {
    this.#feed = feed;
    const states = this.#states;
    feed.provide(function* (): Generator<CopyMessage> {
      for (const [served, state] of states)
        if (served.zone !== undefined) yield* wholeZone(served, served.zone, state);
    });
  }

  /** To be called before the zone is loaded. */
  add(served: ServedZone): void {
    this.#states.set(served, 0);
  }

  /** Sends the current zone; its state must not change until the promise resolves. */
  async publishWhole(served: ServedZone): Promise<void> {
    const { zone } = served;
    const state = this.#next(served);
    if (zone === undefined || state === undefined) return;
    let count = 0;
    for (const message of wholeZone(served, zone, state)) {
      this.#feed.publish(message);
      if (++count % MESSAGES === 0) await nextImmediate();
    }
  }

  publishChange(served: ServedZone, { from, soa, removed, added }: ZoneChange): void {
    const state = this.#next(served);
    if (state === undefined) return;
    const octets = { removed: removed.toOctets(), added: added.toOctets() };
    const { ttl, rdata } = soa;
    const apex = served.apex.toString();
    this.#feed.publish({
      kind: "change",
      apex,
      state,
      from,
      soa: { ttl, rdata: rdata.slice() },
      ...octets,
    } satisfies CopyMessage);
  }

  /** Resolves once all data planes serve everything published, as reported by {@link Feed.taken}. */
  taken(): Promise<void> {
    return this.#feed.taken();
  }

  #next(served: ServedZone): number | undefined {
    const state = this.#states.get(served);
    if (state === undefined) return undefined;
    this.#states.set(served, state + 1);
    return state + 1;
  }
}

function* wholeZone(served: ServedZone, zone: Zone, state: number): Generator<CopyMessage> {
  const apex = served.apex.toString();
  yield { kind: "begin", apex };
  const soa = soaRecord(zone);
  let log = new RecordLog();
  for (const record of copyOfZone(zone).records()) {
    const rdata = plainData(record);
    const { wire } = record.name;
    log.add(wire, wire.length, record.type, record.ttl, rdata, 0, rdata.length);
    if (log.count < PORTION) continue;
    yield { kind: "records", apex, octets: log.toOctets() };
    log = new RecordLog();
  }
  if (log.count > 0) yield { kind: "records", apex, octets: log.toOctets() };
  yield { kind: "end", apex, state, soa: { ttl: soa.ttl, rdata: plainData(soa) } };
}
