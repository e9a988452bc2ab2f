/** The list of zones printed at startup (docs/spec/coredns-behaviour.md#starting). */
import type { ServerKey } from "../corefile/server-key.ts";
import type { Configuration } from "../server/configuration/configuration.ts";

const PREFERRED_SYNTAX = /^(([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)\.)+$/;

/** One line per zone and listen address, sorted by zone. Warnings about unusual zone names come first. */
export function zoneLines(configuration: Configuration): string[] {
  const listed: { key: ServerKey; host: string }[] = [];
  for (const { keys, settings } of configuration.blocks) {
    if (settings.listensNowhere) continue;
    const hosts = settings.listenHosts.length > 0 ? settings.listenHosts : [""];
    for (const host of hosts) for (const key of keys) listed.push({ key, host });
  }
  listed.sort(
    (a, b) => a.host.localeCompare(b.host) || a.key.port - b.key.port || compareText(a.key.zone, b.key.zone),
  );
  return listed.flatMap(({ key, host }) => {
    const prefix = key.scheme === "dns" ? "" : `${key.scheme}://`;
    const line = `${prefix}${key.zone}:${key.port}${host === "" ? "" : ` on ${host}`}`;
    return isUnusual(key.zone)
      ? [`Warning: Domain "${key.zone}" does not follow RFC1035 preferred syntax`, line]
      : [line];
  });
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function isUnusual(zone: string): boolean {
  return zone !== "." && !/\.(in-addr|ip6)\.arpa\.$/.test(`.${zone}`) && !PREFERRED_SYNTAX.test(zone);
}
