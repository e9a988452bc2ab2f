/** Asks one server like a stub resolver: over UDP, once more if no reply comes, and over TCP if the reply is truncated. */
import { decodeMessage, encodeMessage, HEADER_OCTETS, type Message, makeQuery } from "../../dns/message.ts";
import { Flag } from "../../dns/numbers.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import type { Random } from "../../plugin/contract/site.ts";
import type { UpstreamAddress } from "../../upstream/config/address.ts";
import type { Exchange } from "../../upstream/exchange/exchange.ts";
import { ExchangeError } from "../../upstream/exchange/exchange-error.ts";
import { UpstreamMetrics } from "../../upstream/exchange/upstream-metrics.ts";
import { exchangeOnce } from "../../upstream/exchange-once.ts";
import { TcpExchange } from "../../upstream/tcp/tcp-exchange.ts";
import { UdpExchange } from "../../upstream/udp/udp-exchange.ts";
import type { AskedQuestion } from "./questions.ts";

export interface ServerReply {
  readonly message: Message;
  /** Whether the reply over UDP had TC set; {@link message} is the one over TCP. */
  readonly wasTruncated: boolean;
}

/** Why there is no reply, such as `timeout` or `connection refused`. */
export interface NoReply {
  readonly fault: string;
}

export interface AskedServerOptions {
  readonly address: UpstreamAddress;
  readonly clock: Clock;
  readonly random: Random;
  /** Milliseconds. */
  readonly timeout: number;
}

const TRIES = 2;
/** Milliseconds without use after which a socket closes. */
const EXPIRE = 10_000;
const WHEEL_STEP = 20;

export class AskedServer implements Disposable {
  readonly address: UpstreamAddress;
  readonly #timeout: number;
  readonly #wheel: TimeoutWheel;
  readonly #udp: Exchange;
  readonly #tcp: Exchange;

  constructor({ address, clock, random, timeout }: AskedServerOptions) {
    this.address = address;
    this.#timeout = timeout;
    this.#wheel = new TimeoutWheel(clock, WHEEL_STEP);
    const metrics = new UpstreamMetrics(new MetricsRegistry(), "compare");
    const common = { remote: address, clock, random, wheel: this.#wheel, expire: EXPIRE, maxAge: 0 };
    this.#udp = new UdpExchange({ ...common, metrics: metrics.exchange(address.text, "udp") });
    this.#tcp = new TcpExchange({ ...common, maxIdle: 0, metrics: metrics.exchange(address.text, "tcp") });
  }

  /** Never rejects. */
  async ask({ name, type }: Pick<AskedQuestion, "name" | "type">): Promise<ServerReply | NoReply> {
    const query = encodeMessage(makeQuery({ name, type }));
    const questionEnd = HEADER_OCTETS + name.wire.length + 4;
    const over = async (exchange: Exchange): Promise<Message> =>
      decodeMessage(await exchangeOnce(exchange, query, questionEnd, this.#timeout));
    let fault = "";
    for (let attempt = 0; attempt < TRIES; attempt++)
      try {
        const message = await over(this.#udp);
        if ((message.flags & Flag.TC) === 0) return { message, wasTruncated: false };
        return { message: await over(this.#tcp), wasTruncated: true };
      } catch (error) {
        fault = error instanceof ExchangeError && error.fault === "timeout" ? "timeout" : reason(error);
      }
    return { fault };
  }

  [Symbol.dispose](): void {
    this.#udp.close();
    this.#tcp.close();
    this.#wheel.clear();
  }
}

/** Without addresses and ports, so that equal faults are equal. */
function reason(error: unknown): string {
  return messageOf(error).split(": ").at(-1) ?? "";
}
