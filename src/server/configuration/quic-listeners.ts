/** The needs of listeners over QUIC besides a port: an OpenSSL with QUIC, and a certificate. */
import type { DiagnosticSink } from "../../corefile/diagnostic.ts";
import type { ServerKey } from "../../corefile/server-key.ts";
import type { BlockSettings, Machine } from "../../plugin/contract/site.ts";
import { judgeOpenSsl, QuicUnavailable } from "../../quic/availability.ts";

interface Block {
  readonly keys: readonly ServerKey[];
  readonly settings: BlockSettings;
}

export function reportQuic(
  blocks: readonly Block[],
  { openssl }: Pick<Machine, "openssl">,
  report: DiagnosticSink,
): void {
  const keys = blocks.flatMap((block) => block.keys.filter(isQuic).map((key) => ({ key, block })));
  const [first] = keys;
  if (first === undefined) return;
  if (openssl !== undefined) judge(openssl, first.key, report);
  const place = ({ scheme, port }: ServerKey): string => `${scheme} ${port}`;
  const certified = new Set(
    keys.filter(({ block }) => block.settings.identity !== undefined).map(({ key }) => place(key)),
  );
  for (const { key, block } of keys) {
    if (block.settings.greeting !== undefined)
      report.warning(
        "QUIC_WITHOUT_PROXY",
        key.span,
        `'proxyproto' does nothing for ${key.scheme}:// listeners`,
        {
          notes: ["a datagram with a proxy's header is not valid QUIC and is lost"],
        },
      );
    if (certified.has(place(key))) continue;
    report.error("QUIC_WITHOUT_TLS", key.span, `${key.scheme}:// needs a certificate`, {
      notes: ["QUIC is always encrypted: add 'tls CERT KEY' to the block"],
    });
  }
}

function judge(openssl: string, key: ServerKey, report: DiagnosticSink): void {
  try {
    const advice = judgeOpenSsl(openssl);
    if (advice !== undefined) report.warning("QUIC_OPENSSL_OLD", key.span, advice);
  } catch (error) {
    if (!(error instanceof QuicUnavailable)) throw error;
    report.error("QUIC_UNAVAILABLE", key.span, error.message);
  }
}

function isQuic({ scheme }: ServerKey): boolean {
  return scheme === "quic" || scheme === "https3";
}
