import { join } from "node:path";
import { capture } from "../../scripts/lib/captured-process.ts";
import {
  CLUSTER_SERVICES,
  CLUSTER_TTL,
  CLUSTER_ZONE,
  EXTERNAL_ADDRESSES,
  EXTERNAL_TTL,
  EXTERNAL_ZONE,
  SINKHOLE_ADDRESS,
  SINKHOLE_ZONE,
} from "../names.ts";
import {
  type Deployment,
  type EncryptedListener,
  type LaunchPlan,
  type ServerKind,
  ServerUnavailable,
} from "./server.ts";

export const UNBOUND: ServerKind = {
  name: "unbound",
  about: "Unbound with one thread",
  speaksTcp: true,
  speaksTls: true,
  speaksQuic: false,
  isEcho: false,
  prepare: unboundVersion,
  launch(deployment) {
    const { folder, port, upstreamPort, cacheEntries, encrypted } = deployment;
    const configuration = [
      ...SERVER,
      `  interface: 127.0.0.1@${port}`,
      ...(encrypted === undefined ? [] : encryptedLines(encrypted)),
      ...cacheLines(cacheEntries),
      `  include: ${join(folder, NAMES_FILE)}`,
      "forward-zone:",
      '  name: "."',
      `  forward-addr: 127.0.0.1@${upstreamPort}`,
      ...REMOTE_CONTROL,
    ].join("\n");
    return plan(folder, configuration, { [NAMES_FILE]: CLUSTER_NAMES });
  },
};

/** The server that all others forward to: every name of the external zone has the same addresses. */
export function upstreamPlan({ folder, port }: Pick<Deployment, "folder" | "port">): LaunchPlan {
  const data = (text: string): string => `  local-data: "${EXTERNAL_ZONE}. ${EXTERNAL_TTL} IN ${text}"`;
  const configuration = [
    ...SERVER,
    `  interface: 127.0.0.1@${port}`,
    `  local-zone: "${EXTERNAL_ZONE}." redirect`,
    data(`SOA ns.${EXTERNAL_ZONE}. hostmaster.${EXTERNAL_ZONE}. 1 7200 1800 86400 300`),
    data(`A ${EXTERNAL_ADDRESSES.A}`),
    data(`AAAA ${EXTERNAL_ADDRESSES.AAAA}`),
    // Whatever else is asked, such as the probe of `loop`, does not exist: nothing leaves this machine.
    '  local-zone: "." static',
    ...REMOTE_CONTROL,
  ].join("\n");
  return plan(folder, configuration);
}

/** @throws ServerUnavailable */
export async function unboundVersion(): Promise<string> {
  try {
    const { output } = await capture("unbound", ["-V"], { cwd: "/", timeout: 10_000 });
    return /^Version (\S+)/m.exec(output)?.[1] ?? "unknown";
  } catch {
    throw new ServerUnavailable("not installed: unbound (Debian package unbound)");
  }
}

const NAMES_FILE = "names.conf";

const CLUSTER_NAMES = [
  `local-zone: "${CLUSTER_ZONE}." static`,
  `local-data: "${CLUSTER_ZONE}. ${CLUSTER_TTL} IN SOA ns.dns.${CLUSTER_ZONE}. hostmaster.${CLUSTER_ZONE}. 1 7200 1800 86400 5"`,
  `local-zone: "${SINKHOLE_ZONE}." redirect`,
  `local-data: "${SINKHOLE_ZONE}. 60 IN A ${SINKHOLE_ADDRESS}"`,
  ...CLUSTER_SERVICES.map(({ domain, address }) => `local-data: "${domain}. ${CLUSTER_TTL} IN A ${address}"`),
  "",
].join("\n");

/** No privileges dropped, no files written, no validation, no limits that the load would meet. */
const SERVER: readonly string[] = [
  "server:",
  '  username: ""',
  '  chroot: ""',
  '  pidfile: ""',
  "  use-syslog: no",
  '  logfile: ""',
  "  verbosity: 0",
  "  do-daemonize: no",
  "  do-ip6: no",
  "  num-threads: 1",
  "  so-rcvbuf: 4m",
  "  so-sndbuf: 4m",
  "  outgoing-range: 4096",
  "  num-queries-per-thread: 4096",
  "  incoming-num-tcp: 4096",
  '  module-config: "iterator"',
  "  access-control: 127.0.0.0/8 allow",
  "  do-not-query-localhost: no",
  "  qname-minimisation: no",
];

const REMOTE_CONTROL: readonly string[] = ["remote-control:", "  control-enable: no", ""];

function encryptedLines({ scheme, port, certificate, key }: EncryptedListener): string[] {
  return [
    `  interface: 127.0.0.1@${port}`,
    `  ${scheme}-port: ${port}`,
    `  tls-service-pem: ${certificate}`,
    `  tls-service-key: ${key}`,
  ];
}

function cacheLines(entries: number): string[] {
  // Unbound counts octets, not entries: this is more than any workload fills.
  if (entries > 0) return ["  msg-cache-size: 512m", "  rrset-cache-size: 1024m"];
  return ["  cache-max-ttl: 0", "  cache-max-negative-ttl: 0"];
}

function plan(
  folder: string,
  configuration: string,
  otherFiles: Readonly<Record<string, string>> = {},
): LaunchPlan {
  return {
    command: "unbound",
    args: ["-d", "-c", join(folder, "unbound.conf")],
    files: { "unbound.conf": configuration, ...otherFiles },
  };
}
