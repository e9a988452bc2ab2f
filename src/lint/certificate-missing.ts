import type { Scheme } from "../corefile/server-key.ts";
import { canonicalHost } from "../lib/net/listen-address.ts";
import type { LintBlock } from "./lint-block.ts";
import type { LintRule } from "./rule.ts";

/** The protocol on the port of a key without a certificate. */
const IN_THE_CLEAR: Readonly<Partial<Record<Scheme, string>>> = {
  tls: "plain TCP",
  https: "plain HTTP/1.1",
  grpc: "plain HTTP/2",
};

/** Finds keys that promise encryption but have no certificate. */
export const certificateMissing: LintRule = {
  code: "LINT_CERTIFICATE_MISSING",
  about:
    "a key with tls://, https:// or grpc:// is served in the clear, as no block on its listener has a 'tls'",

  check({ blocks }, report) {
    const listening = blocks.filter(({ settings }) => !settings.listensNowhere);
    const encrypted = new Set(listening.filter(hasTls).flatMap(placesOf));
    for (const block of listening) {
      for (const { scheme, port, span } of block.keys) {
        const spoken = IN_THE_CLEAR[scheme];
        const places = hostsOf(block).map((host) => place(scheme, port, host));
        if (spoken === undefined || places.every((at) => encrypted.has(at))) continue;
        const text = `${scheme}:// on port ${port} is ${spoken}: no server block there has a 'tls'`;
        report.warning(certificateMissing.code, span, text, {
          expected: "'tls' with a certificate and key, unless a proxy terminates TLS",
        });
      }
    }
  },
};

function hasTls({ directives }: LintBlock): boolean {
  return directives.some(({ name }) => name.text === "tls");
}

function placesOf(block: LintBlock): string[] {
  return block.keys.flatMap(({ scheme, port }) => hostsOf(block).map((host) => place(scheme, port, host)));
}

function hostsOf({ settings: { listenHosts } }: LintBlock): readonly string[] {
  return listenHosts.length > 0 ? listenHosts.map(canonicalHost) : [""];
}

function place(scheme: Scheme, port: number, host: string): string {
  return `${scheme}://${host} ${port}`;
}
