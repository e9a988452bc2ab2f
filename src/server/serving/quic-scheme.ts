/** `quic://`: DNS over QUIC (RFC 9250), by the OpenSSL inside Node, in a thread of its own. */
import type { ServerIdentity } from "../../lib/files/server-identity.ts";
import type { QuicIdentity } from "../../quic/openssl/server-context.ts";
import { listenDoq } from "../../transports/quic/doq.ts";
import type { QuicListenOptions, QuicTransport } from "../../transports/quic/quic-transport.ts";
import type { QuicLimits } from "../../transports/quic/thread-protocol.ts";
import type { Transport } from "../../transports/transport.ts";
import type { ListenerPlace, SchemeServer } from "./scheme-server.ts";

/**
 * Connections of a listener unless the configuration sets a bound: a QUIC connection takes far more memory than one
 * over TCP.
 */
export const MAX_QUIC_CONNECTIONS = 4_096;

export const quicScheme: SchemeServer = {
  transports: ["quic"],
  async open(name, { port, reusePort }, place) {
    const { label, host, metrics, settings } = place;
    const responses = metrics.counter({
      name: "coredns_dns_quic_responses_total",
      help: "Responses of DNS over QUIC, by code.",
      labels: ["server", "status"],
    });
    const transport = await listenDoq({ host, port }, place.receiver(name), {
      ...quicOptions(place),
      reusePort,
      limits() {
        const { maxQuicConnections, maxQuicStreams, maxQuicQueries, readTimeout, idleTimeout } = settings();
        return {
          maxConnections: maxQuicConnections || MAX_QUIC_CONNECTIONS,
          maxStreams: maxQuicStreams,
          maxRequests: maxQuicQueries,
          ...octetLimits(place),
          readTimeout,
          idleTimeout,
        };
      },
      onResponse: (code) => responses.slot(label, `0x${code.toString(16)}`).increment(),
    });
    return followingSettings(transport, place);
  },
};

/** A listener has a thread of its own that does not share the budget of the others: it gets half of it for itself. */
export function octetLimits({ budget }: ListenerPlace): OctetLimits {
  const maxOctets = budget.limits.maxOctets / 2;
  return {
    maxHeld: Math.floor(budget.limits.maxUnsentOfAll / 2),
    maxUnsent: Math.floor(Math.min(maxOctets / 4, MOST_UNSENT)),
    maxOctets,
  };
}

/** Some 6,500 streams. */
const MOST_UNSENT = 64 * 1024 * 1024;

type OctetLimits = Pick<QuicLimits, "maxHeld" | "maxUnsent" | "maxOctets">;

/** The options of all protocols over QUIC. */
export function quicOptions(place: ListenerPlace): QuicOptions {
  const { label, clock, counters, metrics, settings, onError } = place;
  const failed = metrics
    .counter({
      name: "portolan_quic_failed_handshakes_total",
      help: "QUIC connections that ended during the handshake: refused, abandoned by the client, or timed out.",
      labels: ["server"],
    })
    .slot(label);
  return {
    clock,
    identity: () => identityOf(settings().identity?.current),
    onKeys: (line) => settings().identity?.current?.keyLog?.(line),
    counters: {
      turnedAway: () => counters.turnedAway.increment(),
      unread: () => counters.unread.increment(),
      failedHandshake: () => failed.increment(),
    },
    onError,
  };
}

type QuicOptions = Pick<QuicListenOptions, "clock" | "identity" | "onKeys" | "onError"> & {
  readonly counters: Omit<QuicListenOptions["counters"], "protocolError">;
};

/** Forwards settings that may change to the thread of a listener, which cannot read them itself. */
export function followingSettings(transport: QuicTransport, { settings }: ListenerPlace): Transport {
  const follow = (): (() => void) | undefined =>
    settings().identity?.onChange(() => transport.identityChanged());
  let holder = settings().identity;
  let unfollow = follow();
  transport.onSettings = () => {
    if (settings().identity === holder) return;
    holder = settings().identity;
    unfollow?.();
    unfollow = follow();
    transport.identityChanged();
  };
  transport.onClose = () => unfollow?.();
  return transport;
}

function identityOf(identity: ServerIdentity | undefined): QuicIdentity | undefined {
  if (identity === undefined) return undefined;
  const { context, clientAuthentication, keyLog } = identity;
  return {
    certificate: pemOf(context.cert),
    key: pemOf(context.key),
    authorities: context.ca === undefined ? undefined : pemOf(context.ca),
    clientAuthentication,
    logsKeys: keyLog !== undefined,
  };
}

/** Identities are read from files; each part is one text. */
function pemOf(part: unknown): string {
  if (typeof part === "string") return part;
  if (part instanceof Uint8Array) return Buffer.from(part).toString();
  throw new TypeError("a certificate or key that is not text");
}
