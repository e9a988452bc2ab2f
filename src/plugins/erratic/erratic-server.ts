import { A, AAAA, Name, NS, RecordType, type ResourceRecord, SOA } from "../../dns/index.ts";
import type { SearchPathSource } from "../../plugin/contract/search-path.ts";
import {
  type Clock,
  DROPPED,
  type Handler,
  type Outcome,
  type PluginInstance,
  type Query,
} from "../../plugin/index.ts";

export interface ErraticBehaviour {
  /** Every n-th query is dropped, truncated or delayed, starting with the first; 0 for none. */
  readonly dropEach: number;
  readonly truncateEach: number;
  readonly delayEach: number;
  /** Milliseconds. */
  readonly delay: number;
  /** Number of copies of the address in an answer. */
  readonly copies: number;
}

/** The same for every client (`autopath @erratic`). */
const SEARCH_PATH = [Name.parse("a.example.org."), Name.parse("b.example.org.")];
const ADDRESS = "192.0.2.53";
const IPV6_ADDRESS = "2001:db8::53";

/** Ready for two queries only: after the third and before the fifth. */
const READY_FROM = 3;
const READY_BELOW = 5;

export class ErraticServer implements PluginInstance {
  readonly #behaviour: ErraticBehaviour;
  readonly #clock: Clock;
  #queries = 0;

  constructor(behaviour: ErraticBehaviour, clock: Clock) {
    this.#behaviour = behaviour;
    this.#clock = clock;
  }

  readonly searchPathSource: SearchPathSource = { searchPath: () => SEARCH_PATH };

  readonly handle: Handler = (query) => {
    const number = this.#queries++;
    const { dropEach, truncateEach, delayEach, delay } = this.#behaviour;
    if (isTurn(number, dropEach)) {
      query.trace?.note("dropped on purpose", { query: number });
      return DROPPED;
    }
    const truncated = isTurn(number, truncateEach);
    if (!isTurn(number, delayEach)) return this.#answer(query, truncated);
    query.trace?.note("delayed on purpose", { milliseconds: delay });
    return new Promise((resolve) => {
      this.#clock.after(delay, () => resolve(this.#answer(query, truncated)));
    });
  };

  ready(): boolean {
    return this.#queries >= READY_FROM && this.#queries < READY_BELOW;
  }

  #answer(query: Query, truncated: boolean): Outcome {
    const { name } = query;
    const { copies } = this.#behaviour;
    switch (query.type) {
      case RecordType.A: {
        const record = A.create(name, 0, { address: ADDRESS });
        return query.reply({ authoritative: true, truncated, answer: new Array(copies).fill(record) });
      }
      case RecordType.AAAA: {
        const record = AAAA.create(name, 0, { address: IPV6_ADDRESS });
        return query.reply({ authoritative: true, truncated, answer: new Array(copies).fill(record) });
      }
      case RecordType.AXFR:
        return query.reply({ authoritative: true, answer: transferOf(name, truncated) });
      default:
        return query.fail();
    }
  }
}

function isTurn(number: number, each: number): boolean {
  return each > 0 && number % each === 0;
}

/** A small zone; without the SOA record at its end a transfer is truncated (RFC 5936 section 2.2). */
function transferOf(zone: Name, cutOff: boolean): ResourceRecord[] {
  const soa = SOA.create(zone, 0, {
    primary: zone,
    mailbox: zone,
    serial: 1,
    refresh: 7200,
    retry: 3600,
    expire: 1_209_600,
    minimum: 3600,
  });
  const content = [
    NS.create(zone, 0, { nameServer: zone }),
    A.create(zone, 0, { address: ADDRESS }),
    AAAA.create(zone, 0, { address: IPV6_ADDRESS }),
  ];
  return cutOff ? [soa, ...content] : [soa, ...content, soa];
}
