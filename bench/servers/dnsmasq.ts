import { capture } from "../../scripts/lib/captured-process.ts";
import { CLUSTER_TTL, CLUSTER_ZONE, SINKHOLE_ADDRESS, SINKHOLE_ZONE } from "../names.ts";
import { type ServerKind, ServerUnavailable } from "./server.ts";

export const DNSMASQ: ServerKind = {
  name: "dnsmasq",
  about: "dnsmasq",
  speaksTcp: true,
  speaksTls: false,
  speaksQuic: false,
  isEcho: false,
  async prepare() {
    try {
      const { output } = await capture("dnsmasq", ["--version"], { cwd: "/", timeout: 10_000 });
      return /version (\S+)/i.exec(output)?.[1] ?? "unknown";
    } catch {
      throw new ServerUnavailable("not installed: dnsmasq (Debian package dnsmasq-base)");
    }
  },
  launch({ port, upstreamPort, cacheEntries, cluster }) {
    return {
      command: "dnsmasq",
      args: [
        // In the foreground; --no-daemon would serve one TCP connection after the other.
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--pid-file",
        "--user=root",
        "--no-hosts",
        "--no-resolv",
        "--listen-address=127.0.0.1",
        "--bind-interfaces",
        `--port=${port}`,
        `--addn-hosts=${cluster.hosts}`,
        `--local=/${CLUSTER_ZONE}/`,
        `--address=/${SINKHOLE_ZONE}/${SINKHOLE_ADDRESS}`,
        `--local-ttl=${CLUSTER_TTL}`,
        `--server=127.0.0.1#${upstreamPort}`,
        `--cache-size=${cacheEntries}`,
        "--dns-forward-max=4096",
      ],
      files: {},
    };
  },
};
