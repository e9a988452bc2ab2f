import type { PluginInstance, Site } from "../../plugin/index.ts";
import { BackedZones } from "../../zones/backed/zone-set.ts";
import type { Route53Config } from "./config.ts";
import { HostedZoneSource } from "./hosted-zone-source.ts";
import { Route53Connection } from "./route53-connection.ts";

export function createRoute53(config: Route53Config, site: Site): PluginInstance {
  const { zones, refresh, aws_access_key: key, aws_endpoint: endpoint, credentials } = config;
  const file = credentials?.file === undefined ? undefined : site.resolvePath(credentials.file);
  const connection = new Route53Connection({
    clock: site.clock,
    key,
    endpoint,
    profile: credentials?.profile,
    file,
  });
  const signIn = JSON.stringify([key, endpoint, credentials?.profile, file]);
  return new BackedZones({
    site,
    fallthrough: config.fallthrough,
    zones: zones.map(({ apex, id }) => ({
      apex,
      source: new HostedZoneSource({ connection, id, identity: `${signIn} ${id}` }),
    })),
    refresh,
    startFailure: "failed to initialize route53 plugin",
    open: () => connection.open(),
    close: () => connection.close(),
  });
}
