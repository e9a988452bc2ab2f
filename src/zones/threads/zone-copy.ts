/** A follower's side of `zone-copies.ts`. */
import { setImmediate as nextImmediate } from "node:timers/promises";
import type { Name } from "../../dns/name.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Feed } from "../../plugin/contract/site.ts";
import { type PlainRecord, RecordLog } from "../data/record-log.ts";
import { Zone } from "../data/zone.ts";
import type { CopyMessage, PlainSoa } from "../serving/copy-set.ts";
import type { ServedZone } from "../serving/served-zone.ts";
import type { ZoneService } from "../serving/zone-service.ts";

/** One zone. */
export class ZoneCopy {
  readonly served: ServedZone;
  readonly #service: ZoneService;
  #incoming: Zone | undefined;
  #state = 0;
  /** States come into force one after the other. */
  #turn: Promise<void> = Promise.resolve();

  constructor(served: ServedZone, service: ZoneService) {
    this.served = served;
    this.#service = service;
  }

  /** Receives messages for all of the zones. */
  static receive(feed: Feed, copies: readonly ZoneCopy[], onError: (error: unknown) => void): void {
    feed.receive((message) => {
      const copyMessage = message as CopyMessage;
      const copy = copies.find(({ served }) => served.apex.toString() === copyMessage.apex);
      return copy === undefined ? undefined : copy.#take(copyMessage, onError);
    });
  }

  /** @returns a promise that resolves when the state completed by the message is in force */
  #take(message: CopyMessage, onError: (error: unknown) => void): Promise<void> | undefined {
    const { apex } = this.served;
    switch (message.kind) {
      case "begin":
        this.#incoming = new Zone(apex);
        return undefined;
      case "records":
        for (const record of RecordLog.fromOctets(message.octets)) this.#incoming?.addPlain(record);
        return undefined;
      case "end": {
        const zone = this.#incoming;
        // A state that started before this follower joined is not complete here.
        if (zone === undefined) return undefined;
        this.#incoming = undefined;
        this.#state = message.state;
        zone.addPlain(soaOf(apex, message.soa));
        this.#turn = this.#turn.then(() => this.#replace(zone)).catch(onError);
        return this.#turn;
      }
      case "change": {
        // The snapshot may include it already.
        if (message.state !== this.#state + 1) return undefined;
        this.#state = message.state;
        const change = {
          from: message.from,
          soa: soaOf(apex, message.soa),
          removed: RecordLog.fromOctets(message.removed),
          added: RecordLog.fromOctets(message.added),
        };
        this.#turn = this.#turn
          .then(() => this.#service.advance(this.served, [change], Number.POSITIVE_INFINITY))
          .catch(onError);
        return this.#turn;
      }
    }
  }

  async #replace(zone: Zone): Promise<void> {
    // No query waits for an unloaded zone; with the next message it is loaded.
    if (this.served.zone === undefined) await zone.order();
    else await zone.order(() => nextImmediate<void>());
    await this.#service.replace(this.served, zone);
  }
}

function soaOf(apex: Name, { ttl, rdata }: PlainSoa): PlainRecord {
  return { owner: apex.wire, type: RecordType.SOA, ttl, rdata };
}
