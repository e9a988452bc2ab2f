import type { PluginInstance, Site } from "../../plugin/index.ts";
import { BackedZones } from "../../zones/backed/zone-set.ts";
import { cloudNamed, PUBLIC_CLOUD } from "./clouds.ts";
import type { AzureConfig } from "./config.ts";
import { DnsZoneSource } from "./dns-zone-source.ts";
import { ResourceManager } from "./resource-manager.ts";

export function createAzure(config: AzureConfig, site: Site): PluginInstance {
  const { zones, tenant, client, secret, access, endpoint } = config;
  const { environment } = site.machine;
  const cloud = cloudNamed(config.environment ?? (environment.AZURE_ENVIRONMENT || PUBLIC_CLOUD));
  const subscription = config.subscription ?? environment.AZURE_SUBSCRIPTION_ID ?? "";
  const manager = new ResourceManager({ site, cloud, endpoint, subscription, tenant, client, secret });
  const signIn = JSON.stringify([cloud, endpoint, subscription, tenant, client, secret, access]);
  return new BackedZones({
    site,
    fallthrough: config.fallthrough,
    zones: zones.map(({ group, zone, apex }) => ({
      apex,
      source: new DnsZoneSource({ manager, group, zone, access, identity: `${signIn} ${group}:${zone}` }),
    })),
    refresh: config.refresh,
    open: () => manager.open(),
    close: () => manager.close(),
  });
}
