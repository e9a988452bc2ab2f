/**
 * The zones that every server answers itself (RFC 6303 section 4, RFC 6761 section 6.3), and queries for `localhost`
 * with a search domain.
 */
import {
  A,
  AAAA,
  Name,
  NS,
  PTR,
  Rcode,
  RecordClass,
  RecordType,
  type ResourceRecord,
  SOA,
} from "../../dns/index.ts";
import { type CounterSlot, type Handler, type Query, type Reply, ZoneList } from "../../plugin/index.ts";

/** Seconds: a week. */
const TTL = 604_800;

const LOCALHOST = Name.parse("localhost.");
const HOSTMASTER = Name.parse("root.localhost.");
const LOOPBACK_POINTER = Name.parse("1.0.0.127.in-addr.arpa.");
const REVERSE_ZONES = new ZoneList(
  ["0.in-addr.arpa.", "127.in-addr.arpa.", "255.in-addr.arpa."].map((zone) => Name.parse(zone)),
);

/** The label `localhost` with its length octet. */
const LOCALHOST_LABEL = LOCALHOST.folded.subarray(0, -1);

export class LocalNames {
  readonly #answersPrefix: boolean;
  readonly #requests: CounterSlot;

  /**
   * @param answersPrefix whether to answer names that only begin with `localhost.` @param requests counts queries for
   * names longer than `localhost.`
   */
  constructor(answersPrefix: boolean, requests: CounterSlot) {
    this.#answersPrefix = answersPrefix;
    this.#requests = requests;
  }

  readonly handle: Handler = (query, next) => {
    if (query.class !== RecordClass.IN) return next(query);
    const { name } = query;
    if (name.isBelow(LOCALHOST) || (this.#answersPrefix && hasLocalhostPrefix(name))) {
      query.trace?.note("localhost with a search domain or a further label: always this machine");
      if (query.trace?.leavesNoMark !== true) this.#requests.increment();
      return answerHost(query);
    }
    const zone = name.equals(LOCALHOST) ? LOCALHOST : REVERSE_ZONES.match(name);
    if (zone === undefined) return next(query);
    query.trace?.note(`${zone} is a zone that every server answers itself (RFC 6303, RFC 6761)`);
    return zone === LOCALHOST ? answerApex(query, answerHost) : answerReverse(query, zone);
  };
}

/** The loopback addresses; other types have no records. */
function answerHost(query: Query): Reply {
  const { name, type } = query;
  if (type === RecordType.A) return answer(query, A.create(name, TTL, { address: "127.0.0.1" }));
  if (type === RecordType.AAAA) return answer(query, AAAA.create(name, TTL, { address: "::1" }));
  return noData(query, name);
}

function answerApex(query: Query, otherwise: (query: Query) => Reply): Reply {
  const { name, type } = query;
  if (type === RecordType.SOA) return answer(query, startOfAuthority(name));
  if (type === RecordType.NS) return answer(query, NS.create(name, TTL, { nameServer: LOCALHOST }));
  return otherwise(query);
}

function answerReverse(query: Query, zone: Name): Reply {
  const { name, type } = query;
  // The owner has the spelling in the query.
  const apex = name.suffix(name.labelCount - zone.labelCount);
  if (apex === name) return answerApex(query, () => noData(query, apex));
  if (!name.equals(LOOPBACK_POINTER))
    return query.reply({ rcode: Rcode.NXDOMAIN, authority: [startOfAuthority(apex)] });
  return type === RecordType.PTR
    ? answer(query, PTR.create(name, TTL, { target: LOCALHOST }))
    : noData(query, apex);
}

function answer(query: Query, record: ResourceRecord): Reply {
  return query.reply({ answer: [record] });
}

function noData(query: Query, apex: Name): Reply {
  return query.reply({ authority: [startOfAuthority(apex)] });
}

function startOfAuthority(apex: Name): ResourceRecord {
  return SOA.create(apex, TTL, {
    primary: LOCALHOST,
    mailbox: HOSTMASTER,
    serial: 1,
    refresh: 0,
    retry: 0,
    expire: 0,
    minimum: TTL,
  });
}

/** Whether a name begins with `localhost.`. */
function hasLocalhostPrefix({ folded }: Name): boolean {
  if (folded.length <= LOCALHOST.folded.length) return false;
  for (let at = 0; at < LOCALHOST_LABEL.length; at++) if (folded[at] !== LOCALHOST_LABEL[at]) return false;
  return true;
}
