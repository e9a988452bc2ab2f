import type { Name } from "../../dns/index.ts";
import type { CounterFamily, Handler, PluginInstance, Query, Site } from "../../plugin/index.ts";
import { BackedZones } from "../../zones/backed/zone-set.ts";
import { AgentClient, printableAddress } from "./agent-client.ts";
import type { NomadConfig } from "./config.ts";
import { ServiceSource } from "./service-source.ts";

const DEFAULT_ADDRESS = "http://127.0.0.1:4646";
/** Milliseconds between two listings while services change continuously. */
const SHORTEST_INTERVAL = 250;

export function createNomad(config: NomadConfig, site: Site): PluginInstance {
  const { zone: apex, token, token_file: tokenFile, ttl } = config;
  const given = config.address.flatMap(({ urls }) => urls);
  const addresses = given.length > 0 ? given : [site.machine.environment.NOMAD_ADDR || DEFAULT_ADDRESS];
  const filter =
    config.filter.length === 0 ? undefined : config.filter.flatMap(({ words }) => words).join(" ");
  const client = new AgentClient({ site, addresses, token, tokenFile });
  const source = new ServiceSource({
    client,
    apex,
    text: `Nomad at ${addresses.map(printableAddress).join(" ")}`,
    identity: JSON.stringify([addresses, token, tokenFile, filter, ttl]),
    filter,
    ttl,
  });
  return new BackedZones({
    site,
    fallthrough: config.fallthrough,
    zones: [{ apex, source }],
    refresh: SHORTEST_INTERVAL,
    open: () => client.open(),
    close: () => client.close(),
    around: (handler) => counting(handler, apex, source, site),
  });
}

/**
 * Counts answers by namespace, as CoreDNS does; a namespace that does not exist is `""`, so that clients cannot
 * create series.
 */
function counting(handler: Handler, apex: Name, source: ServiceSource, site: Site): Handler {
  const counter = (name: string, help: string): CounterFamily =>
    site.metrics.counter({ name, help, labels: ["server", "namespace"] });
  const successes = counter(
    "coredns_nomad_success_requests_total",
    "Queries answered from the services of Nomad.",
  );
  const failures = counter(
    "coredns_nomad_failed_requests_total",
    "Queries for services of Nomad that could not be answered.",
  );
  return (query, next) => {
    const outcome = handler(query, next);
    if (query.trace?.leavesNoMark === true || !query.name.isBelow(apex)) return outcome;
    const hasFailed = !(outcome instanceof Promise) && outcome.kind === "failed";
    const family = hasFailed ? failures : successes;
    family.slot(query.listener.label, namespaceOf(query, apex, source)).increment();
    return outcome;
  };
}

function namespaceOf(query: Query, apex: Name, { namespaces }: ServiceSource): string {
  const index = query.name.labelCount - apex.labelCount - 1;
  const namespace = query.name.labelText(index).toLowerCase();
  return namespaces.has(namespace) ? namespace : "";
}
