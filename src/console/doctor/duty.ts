/** Rules on whether the server can do its job: readiness, the cluster's data, its zones, its Corefile. */
import { countOf } from "../../lib/text/count-of.ts";
import type { TroubleRow } from "../api-types.ts";
import type { Capture } from "./capture.ts";
import { shellWord } from "./command-words.ts";
import { type Cause, notReported, type Remedy, type Rule } from "./finding.ts";

const MOST_CAUSES = 8;

/** Plugins whose faults have rules of their own. */
const CLUSTER_PLUGINS: ReadonlySet<string> = new Set(["kubernetes", "istio"]);
/** Their faults are clients. */
const LIMITING_PLUGINS: ReadonlySet<string> = new Set(["limit", "rrl"]);
const UPSTREAM_PLUGINS: ReadonlySet<string> = new Set(["forward", "grpc", "stub", "unbound"]);

export const notReady: Rule = (capture) => {
  const { last } = capture;
  const waiting = last?.now.notReady;
  if (last === undefined || waiting === undefined) return [notReported("not-ready", capture)];
  if (waiting.length === 0) return [];
  const troubles = troublesOf(capture);
  const causes = waiting.flatMap((plugin): Cause[] => {
    const own = troubles.filter((each) => each.plugin === plugin);
    if (own.length === 0) return [{ who: plugin, figure: "not ready, and it gives no reason" }];
    return own.map(({ subject, reason }) => ({ who: `${plugin} ${subject}`, figure: reason }));
  });
  return [
    {
      code: "not-ready",
      title: `the server is not ready: ${waiting.join(", ")} cannot answer yet`,
      explanation:
        "A pod that is not ready gets no queries through the Service. Queries that reach it may fail with SERVFAIL.",
      share: undefined,
      figures: { plugins: waiting.length, faults: causes.length },
      causes: causes.slice(0, MOST_CAUSES),
      remedies: [{ text: `remove the cause: the log has it, too (plugin/${waiting.join(", plugin/")})` }],
    },
  ];
};

export const clusterData: Rule = (capture) => {
  if (capture.last?.now.troubles === undefined) return [notReported("cluster-data", capture)];
  const { clusters } = capture.last.now;
  const troubles = troublesOf(capture).filter(({ plugin }) => CLUSTER_PLUGINS.has(plugin));
  // Without an API there is no fault to report, but the resources are awaited nevertheless.
  const awaited = clusters.flatMap((cluster) => cluster.awaited);
  if (troubles.length === 0 && awaited.length === 0) return [];
  const causes =
    troubles.length > 0
      ? troubles.map(({ subject, reason }) => ({ who: subject, figure: reason }))
      : awaited.map((resource) => ({ who: resource, figure: "not listed yet" }));
  const isUnlisted = awaited.length > 0;
  const subjects = causes.map(({ who }) => who).join(", ");
  return [
    {
      code: "cluster-data",
      title: isUnlisted ? `the cluster is not listed: ${subjects}` : `the cluster's data is old: ${subjects}`,
      explanation: isUnlisted
        ? "The server knows no Service for certain before everything is listed: names of the cluster get SERVFAIL."
        : "The server goes on to answer from what it knows: new and changed Services are missing, and so is what a faulty manifest holds.",
      share: undefined,
      figures: { awaited: awaited.length, faults: troubles.length },
      causes: causes.slice(0, MOST_CAUSES),
      remedies: clusterRemedies(causes),
    },
  ];
};

/** In the API's words: which verbs on which resource are missing, and for which user. */
const MISSING_RIGHT = /needs the verbs? (.+?) on resource "([^"]+)" of API group "([^"]*)"/;
/** Text of a proxy may be cut: half a name would be a wrong one. */
const SERVICE_ACCOUNT = /"system:serviceaccount:([a-z0-9-]+):([a-z0-9.-]+)"/;

function clusterRemedies(causes: readonly Cause[]): Remedy[] {
  const remedies = causes.flatMap(({ figure }): Remedy[] => {
    const [, verbs, resource, group] = MISSING_RIGHT.exec(figure) ?? [];
    if (verbs === undefined || resource === undefined) return [];
    const full = group === undefined || group === "" ? resource : `${resource}.${group}`;
    const text = `grant the server's service account ${verbs} on ${full}`;
    const [, namespace, account] = SERVICE_ACCOUNT.exec(figure) ?? [];
    if (namespace === undefined || account === undefined) return [{ text: `${text}, in its ClusterRole` }];
    const role = `${account}-${resource}`;
    const words = verbs.split(/,\s*| and /).join(",");
    return [
      {
        text,
        patch: [
          `kubectl create clusterrole ${shellWord(role)} --verb=${shellWord(words)} --resource=${shellWord(full)}`,
          `kubectl create clusterrolebinding ${shellWord(role)} --clusterrole=${shellWord(role)} --serviceaccount=${shellWord(`${namespace}:${account}`)}`,
        ].join("\n"),
      },
    ];
  });
  if (remedies.length > 0) return remedies;
  return [
    {
      text: "check the API server, the network policy in front of it, and the credentials of the server's service account",
    },
  ];
}

export const refusedCorefile: Rule = (capture) => {
  const configuration = capture.last?.configuration;
  if (configuration === undefined) return [notReported("refused-corefile", capture)];
  const { refused, file } = configuration;
  if (refused === undefined) return [notReported("refused-corefile", capture)];
  if (refused === null) return [];
  const errors = refused.diagnostics.filter(({ severity }) => severity === "error");
  return [
    {
      code: "refused-corefile",
      title: `the Corefile was refused at ${new Date(refused.at).toISOString().replace(/\.\d+Z$/, "Z")}: the server runs an older one`,
      explanation:
        "The configuration that was in force before stays in force until a reload succeeds. After a restart there would be no server.",
      share: undefined,
      figures: { errors: errors.length },
      causes:
        errors.length > 0
          ? errors.slice(0, MOST_CAUSES).map(({ file: place, line, column, message }) => ({
              who: `${place}:${line}:${column}`,
              figure: message,
            }))
          : [{ who: file, figure: refused.reason.split("\n", 1)[0] ?? "" }],
      remedies: [
        {
          text: "correct the file, and check it before the next reload",
          patch: `portolan check ${shellWord(file)}`,
        },
      ],
    },
  ];
};

export const zoneData: Rule = (capture) => {
  if (capture.last?.now.troubles === undefined) return [notReported("zone-data", capture)];
  const troubles = troublesOf(capture).filter(
    ({ plugin }) =>
      !CLUSTER_PLUGINS.has(plugin) && !UPSTREAM_PLUGINS.has(plugin) && !LIMITING_PLUGINS.has(plugin),
  );
  if (troubles.length === 0) return [];
  return [
    {
      code: "zone-data",
      title: `${countOf(troubles.length, "source")} of answers cannot be read: ${troubles
        .slice(0, 3)
        .map(({ plugin, subject }) => `${plugin} ${subject}`)
        .join(", ")}`,
      explanation:
        "A zone that was never read answers SERVFAIL. One that cannot be refreshed answers from its last state until that expires.",
      share: undefined,
      figures: { faults: troubles.length },
      causes: troubles
        .slice(0, MOST_CAUSES)
        .map(({ plugin, subject, reason }) => ({ who: `${plugin} ${subject}`, figure: reason })),
      remedies: [
        {
          text: "make the source readable: the primary must run and permit the transfer to this server, and a file must parse",
        },
      ],
    },
  ];
};

export const limitedClients: Rule = (capture) => {
  if (capture.last?.now.troubles === undefined) return [notReported("limited-clients", capture)];
  const troubles = troublesOf(capture).filter(({ plugin }) => LIMITING_PLUGINS.has(plugin));
  if (troubles.length === 0) return [];
  const clients = [...new Set(troubles.map(({ subject }) => subject))];
  return [
    {
      code: "limited-clients",
      title: `${countOf(clients.length, "client")} above a limit: ${clients.slice(0, 3).join(", ")}`,
      explanation:
        "Queries above a limit are truncated, refused or dropped. A client that retries without a pause loses its own answers, a limit that is too low those of others as well.",
      share: undefined,
      figures: { clients: clients.length },
      causes: troubles
        .slice(0, MOST_CAUSES)
        .map(({ plugin, subject, reason }) => ({ who: `${plugin} ${subject}`, figure: reason })),
      remedies: [
        {
          text: "find out why these clients ask so often; or raise the limit, or exempt them, and count first with dry_run",
        },
      ],
    },
  ];
};

/** Faults of upstreams by address. */
export function upstreamFaults(capture: Capture): ReadonlyMap<string, string> {
  const troubles = troublesOf(capture).filter(({ plugin }) => UPSTREAM_PLUGINS.has(plugin));
  return new Map(troubles.map(({ subject, reason }) => [subject, reason]));
}

function troublesOf({ last }: Capture): readonly TroubleRow[] {
  return last?.now.troubles ?? [];
}
