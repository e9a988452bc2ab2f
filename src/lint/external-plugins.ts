/** External CoreDNS plugins, with a note on each and on its replacement in Portolan. */

const OWN = "no built-in plugin does the same; write your own (docs/plugins.md)";
const RESOLVER = "run a resolver such as Unbound and forward to it";
const BLOCK_LISTS = "'acl' blocks clients, 'hosts' and 'template' answer for single names and whole zones";
const ZONE_FILES = "'file' and 'auto' serve zone files, 'etcd' serves keys of etcd";
const LIMITS = "'limit' limits the queries of each client";

/** Replacements by plugin name. */
const REPLACEMENTS: ReadonlyMap<string, string> = new Map([
  ["ads", BLOCK_LISTS],
  ["alias", "'template' and 'rewrite' answer under another name"],
  ["alternate", "'failover' in 'forward' tries another upstream, and 'next' another 'forward'"],
  ["amazondns", "'forward' to the resolver of the VPC"],
  ["blocklist", BLOCK_LISTS],
  ["dnsredir", "a server block for each set of zones, with a 'forward' of its own"],
  ["dockerdiscovery", OWN],
  ["ens", OWN],
  ["fanout", "'forward' queries several upstreams one after another, in the order of 'policy'"],
  ["filter", BLOCK_LISTS],
  ["finalize", "'rewrite' changes names in replies"],
  ["git", "'auto' reads zone files from a directory that git-sync can update"],
  ["gslb", "'loadbalance weighted' chooses among addresses"],
  ["ipecho", "'template' builds answers from name patterns"],
  ["ipin", "'template' builds answers from name patterns"],
  ["k8s_event", OWN],
  [
    "k8s_gateway",
    "'k8s_external' answers for Services with external addresses, but not for Ingress or Gateway",
  ],
  ["kubenodes", "'kubernetes' answers for services and pods; nodes need your own plugin (docs/plugins.md)"],
  ["kubernetai", "a server block with 'kubernetes' for the zone of each cluster"],
  ["lighthouse", "'kubernetes' with 'multicluster' answers for imported services"],
  ["mdns", OWN],
  ["meshname", OWN],
  ["mysql", ZONE_FILES],
  ["netbox", OWN],
  ["pdsql", ZONE_FILES],
  ["ratelimit", LIMITS],
  ["records", "put the records in a zone file for 'file', or addresses in 'hosts'"],
  ["recursor", RESOLVER],
  ["redis", ZONE_FILES],
  ["redisc", "'cache' keeps answers in memory"],
  ["split", "'view' selects a server block by the client's address"],
  ["tailscale", OWN],
  ["unbound", RESOLVER],
  ["warnlist", "'log' with a custom format shows which client asks for what"],
  ["wgsd", OWN],
]);

/** Notes on missing plugins, by name. */
export const externalPlugins: ReadonlyMap<string, string> = new Map(
  [...REPLACEMENTS].map(([name, instead]) => [
    name,
    `'${name}' is an external CoreDNS plugin that is not built in: ${instead}`,
  ]),
);
