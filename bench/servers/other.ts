/** Any other server, as the command line describes it. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { LiveServerKind } from "../cluster/live-server.ts";
import { CLUSTER_ZONE } from "../names.ts";
import { zoneFileCorefile } from "./corefile.ts";
import type { Deployment, ServerKind } from "./server.ts";

export interface OtherServer {
  readonly name: string;
  /** A command line with placeholders, split at blanks. */
  readonly command: string;
  /** Files with placeholders, by workload; under "" the one for all others. Without one it gets a Corefile. */
  readonly templates: ReadonlyMap<string, string>;
}

export function otherServer({ name, command, templates }: OtherServer): ServerKind {
  return {
    name,
    about: "given with --server",
    speaksTcp: true,
    speaksTls: true,
    speaksQuic: true,
    isEcho: false,
    prepare: async () => "as given",
    launch(deployment) {
      const template = templates.get(deployment.workload) ?? templates.get("");
      const file = template === undefined ? "Corefile" : basename(template);
      const places = placeholders(deployment);
      const configuration =
        template === undefined ? zoneFileCorefile(deployment) : fill(readFileSync(template, "utf8"), places);
      const withFile = { ...places, config: join(deployment.folder, file) };
      const [program = "", ...args] = command.split(/\s+/).map((word) => fill(word, withFile));
      return { command: program, args, files: { [file]: configuration } };
    },
  };
}

function placeholders(deployment: Deployment): Readonly<Record<string, string>> {
  return {
    port: `${deployment.port}`,
    metrics: `${deployment.metricsPort}`,
    upstream: `127.0.0.1:${deployment.upstreamPort}`,
    upstreamport: `${deployment.upstreamPort}`,
    zone: CLUSTER_ZONE,
    manifests: deployment.cluster.manifests,
    hosts: deployment.cluster.hosts,
    zonefile: deployment.cluster.zoneFile,
    cache: `${deployment.cacheEntries}`,
  };
}

/** The same server with the Corefile of a live cluster. */
export function liveServer({ name, command }: OtherServer): LiveServerKind {
  return {
    name,
    command: (config) => {
      const [program = "", ...args] = command.split(/\s+/).map((word) => fill(word, { config }));
      return { command: program, args };
    },
  };
}

/** Puts values in place of `{name}`; other braces stay as they are. */
function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{([a-z]+)\}/g, (whole, name: string) => values[name] ?? whole);
}
