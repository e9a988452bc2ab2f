import type { PluginInstance, Site } from "../../plugin/index.ts";
import { BackedZones } from "../../zones/backed/zone-set.ts";
import { CloudDnsApi } from "./cloud-dns-api.ts";
import type { CloudDnsConfig } from "./config.ts";
import { ManagedZoneSource } from "./managed-zone-source.ts";

export function createCloudDns(config: CloudDnsConfig, site: Site): PluginInstance {
  const { zones, endpoint, credentials } = config;
  const file = credentials?.file === undefined ? undefined : site.resolvePath(credentials.file);
  const api = new CloudDnsApi({ site, endpoint, file, project: zones[0]?.project ?? "" });
  const signIn = JSON.stringify([endpoint, file]);
  return new BackedZones({
    site,
    fallthrough: config.fallthrough,
    zones: zones.map(({ apex, project, zone }) => ({
      apex,
      source: new ManagedZoneSource({ api, project, zone, identity: `${signIn} ${project}:${zone}` }),
    })),
    refresh: config.refresh,
    startFailure: "failed to initialize clouddns plugin",
    examine: () => api.examine(),
    open: () => api.open(),
    close: () => api.close(),
  });
}
