/** Plugins for CoreDNS that live outside of it: who uses one is told what it is, and what takes its place here. */

const OWN = "nothing here does the same, so write a plugin of your own (docs/plugins.md)";
const RESOLVER = "run a resolver such as Unbound beside this server, and forward to it";
const BLOCK_LISTS = "'acl' blocks clients, 'hosts' and 'template' answer for single names and whole zones";
const ZONE_FILES = "'file' and 'auto' serve zone files, 'etcd' serves keys of etcd";
const LIMITS = "'forward' has max_concurrent; limits for clients need a plugin of your own (docs/plugins.md)";

/** What to do instead, by name. */
const REPLACEMENTS: ReadonlyMap<string, string> = new Map([
  ["ads", BLOCK_LISTS],
  ["alias", "'template' and 'rewrite' answer under another name"],
  [
    "alternate",
    "'forward' goes on to another upstream with 'failover', and to another 'forward' with 'next'",
  ],
  ["amazondns", "'forward' to the resolver of the VPC"],
  ["blocklist", BLOCK_LISTS],
  ["dnsredir", "a server block for each set of zones, with a 'forward' of its own"],
  ["dockerdiscovery", OWN],
  ["ens", OWN],
  ["fanout", "'forward' asks several upstreams one after the other, by 'policy'"],
  ["filter", BLOCK_LISTS],
  ["finalize", "'rewrite' changes names in replies"],
  ["git", "'auto' reads zone files from a folder: have git-sync keep it"],
  ["gslb", "'loadbalance' with weights chooses among addresses"],
  ["ipecho", "'template' makes answers from patterns of names"],
  ["ipin", "'template' makes answers from patterns of names"],
  ["k8s_event", OWN],
  [
    "k8s_gateway",
    "'k8s_external' answers for Services that have external addresses; not for Ingress or Gateway",
  ],
  [
    "kubenodes",
    "'kubernetes' answers for services and pods; nodes need a plugin of your own (docs/plugins.md)",
  ],
  ["kubernetai", "a server block with 'kubernetes' for the zone of each cluster"],
  ["lighthouse", "'kubernetes' with 'multicluster' answers for imported services"],
  ["mdns", OWN],
  ["meshname", OWN],
  ["mysql", ZONE_FILES],
  ["netbox", OWN],
  ["pdsql", ZONE_FILES],
  ["ratelimit", LIMITS],
  ["records", "'file' takes the same records from a zone file, 'hosts' takes addresses on the spot"],
  ["recursor", RESOLVER],
  ["redis", ZONE_FILES],
  ["redisc", "'cache' keeps answers in memory"],
  ["rrl", LIMITS],
  ["split", "'view' chooses server blocks by what the client is"],
  ["tailscale", OWN],
  ["unbound", RESOLVER],
  ["warnlist", "'log' with a format of your own shows who asks for what"],
  ["wgsd", OWN],
]);

/** What to say of plugins that are not here, by name. */
export const externalPlugins: ReadonlyMap<string, string> = new Map(
  [...REPLACEMENTS].map(([name, instead]) => [
    name,
    `'${name}' is an external plugin of CoreDNS, which is not built in; ${instead}`,
  ]),
);
