/** NOTIFY to secondary servers (RFC 1996): over UDP, repeated until the secondary confirms it. */

import {
  decodeMessage,
  encodeMessage,
  Flag,
  makeQuery,
  type Name,
  Opcode,
  Rcode,
  RecordClass,
  RecordType,
  rcodeName,
  TsigExchange,
  type TsigKey,
} from "../../dns/index.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import type { Site, Timer } from "../../plugin/index.ts";
import { upstreamAddress } from "../../upstream/config/address.ts";
import { UpstreamMetrics } from "../../upstream/exchange/upstream-metrics.ts";
import { exchangeOnce } from "../../upstream/exchange-once.ts";
import { UdpExchange } from "../../upstream/udp/udp-exchange.ts";

const TRIES = 3;
/** Milliseconds for a secondary to confirm. */
const TIMEOUT = 2_000;
/** Milliseconds in which changes after the first are combined: changes of a cluster come by the hundred. */
const GATHER = 500;
/** Milliseconds after which an idle socket closes. */
const EXPIRE = 10_000;

/** How to send a message. */
interface Sending {
  readonly source: string | undefined;
  /** Signs the message, and verifies the answer. */
  readonly key: TsigKey | undefined;
}

interface Target {
  readonly host: string;
  readonly port: number;
}

/** A zone's time of combining changes for an address. */
interface Gathering {
  timer: Timer | undefined;
  /** Sends the combined notification; set once there is a change. */
  next: (() => void) | undefined;
}

export class Notifier {
  readonly #site: Site;
  readonly #wheel: TimeoutWheel;
  readonly #metrics: UpstreamMetrics;
  readonly #exchanges = new Map<string, UdpExchange>();
  /** By zone and address. */
  readonly #gathering = new Map<string, Gathering>();
  readonly #now: () => number;
  #isStopped = false;

  constructor(site: Site) {
    this.#site = site;
    this.#now = () => Math.floor(site.clock.wallTime() / 1_000);
    this.#wheel = new TimeoutWheel(site.clock, 50);
    this.#metrics = new UpstreamMetrics(site.metrics, "transfer");
  }

  /**
   * Notifies an address that the zone changed: at once for the first change, and once for all changes soon after it.
   * @param isStart the server starts: a secondary that failed to reach it needs a moment before it retries @param
   * plugin the plugin that serves the zone: failures are logged under its name
   */
  notify(apex: Name, target: Target, sending: Sending, plugin: string, isStart: boolean): void {
    if (this.#isStopped) return;
    const key = `${apex} ${target.host} ${target.port}`;
    const send = (): void => void this.#send(apex, target, sending, plugin);
    const gathering = this.#gathering.get(key);
    if (gathering !== undefined) {
      gathering.next = send;
      return;
    }
    if (!isStart) send();
    this.#gather(key, { timer: undefined, next: isStart ? send : undefined });
  }

  #gather(key: string, gathering: Gathering): void {
    this.#gathering.set(key, gathering);
    gathering.timer = this.#site.clock.after(GATHER, () => {
      const { next } = gathering;
      if (next === undefined) {
        this.#gathering.delete(key);
        return;
      }
      gathering.next = undefined;
      next();
      this.#gather(key, gathering);
    });
  }

  stop(): void {
    this.#isStopped = true;
    for (const { timer } of this.#gathering.values()) timer?.cancel();
    this.#gathering.clear();
    for (const exchange of this.#exchanges.values()) exchange.close();
    this.#exchanges.clear();
    this.#wheel.clear();
  }

  /** Never rejects. */
  async #send(apex: Name, target: Target, { source, key }: Sending, plugin: string): Promise<void> {
    const exchange = this.#exchange(target, source);
    if (exchange === undefined) return;
    const message = makeQuery(
      { name: apex, type: RecordType.SOA, class: RecordClass.IN },
      { id: this.#site.random.unpredictable() & 0xffff, flags: Flag.AA },
    );
    const bytes = encodeMessage({ ...message, opcode: Opcode.NOTIFY });
    let reason = "";
    for (let attempt = 0; attempt < TRIES && !this.#isStopped; attempt++) {
      try {
        // Each attempt has a new id and time. The exchange may change the id, which is not signed (RFC 8945 section
        // 4.2).
        const guard = key === undefined ? undefined : new TsigExchange(key, this.#now);
        const query = guard?.sign(bytes) ?? bytes;
        const reply = await exchangeOnce(exchange, query, 12 + apex.wire.length + 4, TIMEOUT);
        const { rcode } = decodeMessage(guard?.verify(reply) ?? reply);
        if (rcode === Rcode.NOERROR) return;
        reason = `rcode was "${rcodeName(rcode)}"`;
      } catch (error) {
        reason = `"${messageOf(error)}"`;
      }
    }
    if (!this.#isStopped) {
      const to = upstreamAddress(target.host, target.port)?.text ?? target.host;
      const log = this.#site.processLog.child(`plugin/${plugin}`);
      log.warning(`notify for zone "${apex}" was not accepted by "${to}": ${reason}`);
    }
  }

  #exchange(target: Target, sourceAddress: string | undefined): UdpExchange | undefined {
    const remote = upstreamAddress(target.host, target.port);
    if (remote === undefined) return undefined;
    const key = `${remote.key} ${sourceAddress ?? ""}`;
    let exchange = this.#exchanges.get(key);
    if (exchange === undefined) {
      const { clock, random } = this.#site;
      exchange = new UdpExchange({
        remote,
        sourceAddress,
        clock,
        random,
        wheel: this.#wheel,
        metrics: this.#metrics.exchange(remote.text, "udp"),
        expire: EXPIRE,
        maxAge: 0,
      });
      this.#exchanges.set(key, exchange);
    }
    return exchange;
  }
}
