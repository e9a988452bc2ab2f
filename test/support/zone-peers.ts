/** Other authoritative servers from Debian's packages, each with one zone, from text or from a primary. */

import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { Peer } from "./peers.ts";

/**
 * Where a server has its zone from; `notify` is the port of a secondary on loopback. With `onlyWhole`, NSD and Knot hand out no changes alone. With a
 * key, all of that is signed. `port` is the server's own, any unless given.
 */
export type ZoneSource = { readonly key?: PeerKey; readonly tls?: PeerTls; readonly port?: number } & (
  | { readonly lines: readonly string[]; readonly notify?: number; readonly onlyWhole?: boolean }
  | { readonly primary: number }
);

/** A key of TSIG, for HMAC-SHA-256. */
export interface PeerKey {
  readonly name: string;
  /** In base64. */
  readonly secret: string;
}

/** Transfers over TLS (RFC 9103): on a port of its own where the zone goes out, from the primary's port where it comes in. PEM. */
export interface PeerTls {
  readonly port: number;
  readonly certificate: string;
  readonly key: string;
  /** The authority that signed the other side's certificate, and the name in that certificate. */
  readonly authority: string;
  readonly name: string;
}

export const ZONE_PEERS = {
  nsd: { program: "nsd", start: nsd },
  knot: { program: "knotd", start: knot },
  bind: { program: "named", start: bind },
} as const;
export type ZonePeerName = keyof typeof ZONE_PEERS;

export const zonePeerNames: readonly ZonePeerName[] = ["nsd", "knot", "bind"];

function filesOf(source: ZoneSource): Readonly<Record<string, string>> {
  const { tls } = source;
  return {
    ...("lines" in source && { zone: zoneFile(source.lines) }),
    ...(tls !== undefined && {
      "certificate.pem": tls.certificate,
      "key.pem": tls.key,
      "authority.pem": tls.authority,
    }),
  };
}

export function zoneFile(lines: readonly string[]): string {
  return `${lines.join("\n")}\n`;
}

async function nsd(zone: string, source: ZoneSource): Promise<Peer> {
  const { key, tls } = source;
  const keyName = key?.name ?? "NOKEY";
  const isPrimary = "lines" in source;
  const fromPort = isPrimary ? 0 : (tls?.port ?? source.primary);
  return Peer.start(
    "nsd",
    (port) => ({
      args: ["-d", "-c", "nsd.conf"],
      config: [
        "server:",
        `  ip-address: 127.0.0.1@${port}`,
        `  port: ${port}`,
        "  server-count: 1",
        '  username: ""',
        '  chroot: ""',
        '  zonesdir: "."',
        '  database: ""',
        '  pidfile: "nsd.pid"',
        '  zonelistfile: "zone.list"',
        '  xfrdfile: "xfrd.state"',
        '  xfrdir: "."',
        "  xfrd-reload-timeout: 0",
        "  rrl-ratelimit: 0",
        "  minimal-responses: no",
        ...(tls !== undefined && isPrimary
          ? [
              `  ip-address: 127.0.0.1@${tls.port}`,
              `  tls-port: ${tls.port}`,
              '  tls-service-key: "key.pem"',
              '  tls-service-pem: "certificate.pem"',
            ]
          : []),
        ...(tls !== undefined && !isPrimary ? ['  tls-cert-bundle: "authority.pem"'] : []),
        "remote-control:",
        "  control-enable: no",
        ...(key === undefined
          ? []
          : ["key:", `  name: "${key.name}"`, "  algorithm: hmac-sha256", `  secret: "${key.secret}"`]),
        ...(tls !== undefined && !isPrimary
          ? ["tls-auth:", "  name: secure", `  auth-domain-name: "${tls.name}"`]
          : []),
        "zone:",
        `  name: "${zone}"`,
        '  zonefile: "zone"',
        ...(isPrimary
          ? [
              `  provide-xfr: 127.0.0.1 ${keyName}`,
              ...(source.onlyWhole === true ? [] : ["  create-ixfr: yes", "  store-ixfr: yes"]),
            ]
          : [
              `  request-xfr: ${tls === undefined ? "" : "AXFR "}127.0.0.1@${fromPort} ${keyName}${tls === undefined ? "" : " secure"}`,
              `  allow-notify: 127.0.0.1 ${keyName}`,
              `  provide-xfr: 127.0.0.1 ${keyName}`,
            ]),
        ...("notify" in source ? [`  notify: 127.0.0.1@${source.notify} ${keyName}`] : []),
      ],
      files: filesOf(source),
    }),
    source.port,
  );
}

/** Debian's Knot knows no TLS. */
async function knot(zone: string, source: ZoneSource): Promise<Peer> {
  const { key } = source;
  const keyLines = key === undefined ? [] : [`    key: ${key.name}`];
  return Peer.start(
    "knotd",
    (port) => ({
      args: ["-c", "knotd.conf"],
      config: [
        "server:",
        '  rundir: "."',
        `  listen: 127.0.0.1@${port}`,
        "database:",
        '  storage: "."',
        ...(key === undefined
          ? []
          : ["key:", `  - id: ${key.name}`, "    algorithm: hmac-sha256", `    secret: ${key.secret}`]),
        "remote:",
        "  - id: other",
        `    address: 127.0.0.1@${"primary" in source ? source.primary : (source.notify ?? 9)}`,
        ...keyLines,
        "acl:",
        "  - id: all",
        "    address: 127.0.0.1",
        ...keyLines,
        "    action: [transfer, notify]",
        "zone:",
        `  - domain: "${zone}"`,
        '    storage: "."',
        '    file: "zone"',
        "    acl: all",
        "    semantic-checks: off",
        "    refresh-min-interval: 2",
        ...("primary" in source
          ? ["    master: other"]
          : [`    zonefile-load: ${source.onlyWhole === true ? "whole" : "difference"}`]),
        ...("notify" in source ? ["    notify: other"] : []),
      ],
      files: filesOf(source),
    }),
    source.port,
  );
}

async function bind(zone: string, source: ZoneSource): Promise<Peer> {
  const { key, tls } = source;
  const isPrimary = "lines" in source;
  const keyWord = key === undefined ? "" : ` key ${key.name}`;
  return Peer.start(
    "named",
    (port) => ({
      args: ["-g", "-n", "1", "-c", "named.conf"],
      config: [
        ...(key === undefined ? [] : [`key ${key.name} { algorithm hmac-sha256; secret "${key.secret}"; };`]),
        ...(tls === undefined
          ? []
          : isPrimary
            ? ['tls secure { cert-file "certificate.pem"; key-file "key.pem"; };']
            : [`tls secure { ca-file "authority.pem"; remote-hostname "${tls.name}"; };`]),
        "controls {};",
        "options {",
        '  directory ".";',
        '  pid-file "named.pid";',
        '  session-keyfile "session.key";',
        `  listen-on port ${port} { 127.0.0.1; };`,
        ...(tls !== undefined && isPrimary
          ? [`  listen-on port ${tls.port} tls secure { 127.0.0.1; };`]
          : []),
        "  listen-on-v6 { none; };",
        "  recursion no;",
        "  dnssec-validation no;",
        "  minimal-responses no;",
        `  allow-transfer { ${key === undefined ? "any" : `key ${key.name}`}; };`,
        "};",
        `zone "${zone}" {`,
        ...(isPrimary
          ? [
              '  type primary; file "zone"; ixfr-from-differences yes;',
              ...(source.notify === undefined
                ? ["  notify no;"]
                : [
                    `  notify explicit; notify-delay 0; also-notify { 127.0.0.1 port ${source.notify}${keyWord}; };`,
                  ]),
            ]
          : [
              '  type secondary; file "zone"; notify no;',
              `  primaries { 127.0.0.1 port ${tls?.port ?? source.primary}${keyWord}${tls === undefined ? "" : " tls secure"}; };`,
            ]),
        "};",
      ],
      files: filesOf(source),
    }),
    source.port,
  );
}

/** For the `skip` option of a test. */
export function skipWithoutZonePeer(name: ZonePeerName): string | false {
  return skipWithout(ZONE_PEERS[name].program);
}
