/** Servers of zones: how each is started with one zone from a file, and one thread for queries. */
import { join } from "node:path";
import { capture } from "../../scripts/lib/captured-process.ts";
import { PORTOLAN, portolanCommand } from "./portolan.ts";
import { type LaunchPlan, ServerUnavailable } from "./server.ts";

export interface ZoneDeployment {
  readonly folder: string;
  readonly port: number;
  readonly zone: string;
  readonly zoneFile: string;
}

export interface ZoneServerKind {
  readonly name: string;
  /** @throws ServerUnavailable */
  version(): Promise<string>;
  launch(deployment: ZoneDeployment): LaunchPlan;
}

const portolan = portolanWith("portolan", []);

/** The same answers as cached hits, once each question has been asked: what an answer out of the zone is measured by. */
const portolanCached = portolanWith("portolan with cache", [
  "cache 3600 {",
  "    success 500000",
  "    denial 100000",
  "}",
]);

function portolanWith(name: string, lines: readonly string[]): ZoneServerKind {
  return {
    name,
    version: () => PORTOLAN.prepare(""),
    launch: ({ folder, port, zone, zoneFile }) => ({
      ...portolanCommand(join(folder, "Corefile")),
      files: {
        Corefile: [
          `${zone}:${port} {`,
          ...["bind 127.0.0.1", "errors", ...lines, `file ${zoneFile}`].map((line) => `    ${line}`),
          "}",
          "",
        ].join("\n"),
      },
    }),
  };
}

const nsd: ZoneServerKind = {
  name: "nsd",
  version: () => versionOf("nsd", ["-v"]),
  launch: ({ folder, port, zone, zoneFile }) => ({
    command: "nsd",
    args: ["-d", "-c", join(folder, "nsd.conf")],
    files: {
      "nsd.conf": [
        "server:",
        "  ip-address: 127.0.0.1",
        `  port: ${port}`,
        "  server-count: 1",
        '  username: ""',
        '  chroot: ""',
        `  zonesdir: "${folder}"`,
        '  database: ""',
        `  pidfile: "${join(folder, "nsd.pid")}"`,
        `  zonelistfile: "${join(folder, "zone.list")}"`,
        `  xfrdfile: "${join(folder, "xfrd.state")}"`,
        `  xfrdir: "${folder}"`,
        "  receive-buffer-size: 4194304",
        "  send-buffer-size: 4194304",
        "  rrl-ratelimit: 0",
        "  minimal-responses: no",
        "remote-control:",
        "  control-enable: no",
        "zone:",
        `  name: "${zone}"`,
        `  zonefile: "${zoneFile}"`,
        "",
      ].join("\n"),
    },
  }),
};

const knot: ZoneServerKind = {
  name: "knot",
  version: () => versionOf("knotd", ["-V"]),
  launch: ({ folder, port, zone, zoneFile }) => ({
    command: "knotd",
    args: ["-c", join(folder, "knotd.conf")],
    files: {
      "knotd.conf": [
        "server:",
        `  rundir: "${folder}"`,
        `  listen: 127.0.0.1@${port}`,
        "  udp-workers: 1",
        "  tcp-workers: 1",
        "  background-workers: 1",
        "database:",
        `  storage: "${folder}"`,
        "zone:",
        `  - domain: "${zone}"`,
        `    file: "${zoneFile}"`,
        "    semantic-checks: off",
        "    zonefile-load: whole",
        "    zonefile-sync: -1",
        "    journal-content: none",
        "",
      ].join("\n"),
    },
  }),
};

export const ZONE_SERVERS: readonly ZoneServerKind[] = [portolan, nsd, knot, portolanCached];

async function versionOf(command: string, args: readonly string[]): Promise<string> {
  try {
    const { output } = await capture(command, args, { cwd: "/", timeout: 10_000 });
    return /(\d+\.\d+\.\d+)/.exec(output)?.[1] ?? "unknown";
  } catch {
    throw new ServerUnavailable(`not installed: ${command} (Debian packages nsd, knot)`);
  }
}
