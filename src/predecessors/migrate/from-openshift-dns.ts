/**
 * Turns the object `dns.operator.openshift.io` of OpenShift into values of CoreDNS's Helm chart, which say the same as the Corefile that
 * OpenShift's operator makes of it. Two things differ, because a Deployment of Portolan is another than the operator's: the port, which is that of the
 * Service here, and the address of the metrics, which no proxy stands in front of.
 */
import { parseGoDuration } from "../../lib/time/duration.ts";
import { HelmValuesError } from "./from-helm-values.ts";

type Part = Readonly<Record<string, unknown>>;

const LOG_CLASSES: Part = {
  Normal: "class error",
  Debug: "class denial error",
  Trace: "class all",
};

const POLICIES: Part = { Random: "random", RoundRobin: "round_robin", Sequential: "sequential" };

/** Seconds. */
const POSITIVE_TTL = 900;
const NEGATIVE_TTL = 30;

export function isOpenShiftDns(object: unknown): object is Part {
  const { apiVersion, kind } = partOf(object);
  return typeof apiVersion === "string" && apiVersion.startsWith("operator.openshift.io/") && kind === "DNS";
}

/**
 * @param object one for which {@link isOpenShiftDns} is true
 * @throws HelmValuesError
 */
export function valuesOfOpenShiftDns(object: Part): { readonly servers: readonly Part[] } {
  const spec = partOf(object.spec);
  const clusterDomain = partOf(object.status).clusterDomain;
  const cache = cachePlugin(partOf(spec.cache));
  const log = { name: "log", parameters: ".", configBlock: word(spec.logLevel, LOG_CLASSES, "logLevel") };
  const bufsize = { name: "bufsize", parameters: 1232 };
  const { upstreamResolvers } = spec;
  return {
    servers: [
      ...listOf(spec.servers).map((server, index) => ({
        zones: (Array.isArray(server.zones) ? server.zones : []).map((zone: unknown) => ({ zone })),
        plugins: [
          forward(`servers[${index}].forwardPlugin`, partOf(server.forwardPlugin), "Random"),
          { name: "errors" },
          log,
          bufsize,
          cache,
        ],
      })),
      {
        zones: [{ zone: "." }],
        plugins: [
          bufsize,
          { name: "errors" },
          log,
          { name: "health", configBlock: "lameduck 20s" },
          { name: "ready" },
          {
            name: "kubernetes",
            parameters: `${typeof clusterDomain === "string" ? clusterDomain : "cluster.local"} in-addr.arpa ip6.arpa`,
            configBlock: "pods insecure\nfallthrough in-addr.arpa ip6.arpa",
          },
          { name: "prometheus", parameters: ":9153" },
          forward("upstreamResolvers", partOf(upstreamResolvers), "Sequential"),
          cache,
          { name: "reload" },
        ],
      },
      { zones: [{ zone: "hostname.bind" }], plugins: [{ name: "chaos" }] },
    ],
  };
}

function forward(place: string, { upstreams, policy, transportConfig }: Part, usual: string): Part {
  const { transport, tls } = partOf(transportConfig);
  const isTls = transport === "TLS";
  const { serverName, caBundle } = partOf(tls);
  if (isTls && typeof serverName !== "string")
    throw new HelmValuesError(`${place}.transportConfig.tls: 'serverName' is missing`);
  const targets = (Array.isArray(upstreams) ? upstreams : []).map((upstream, index) =>
    targetOf(upstream, `${place}.upstreams[${index}]`),
  );
  if (targets.length === 0) targets.push("/etc/resolv.conf");
  if (isTls && targets.includes("/etc/resolv.conf"))
    throw new HelmValuesError(`${place}: TLS is for addresses, and not for the resolvers of the system`);
  const bundle = partOf(caBundle).name;
  return {
    name: "forward",
    parameters: [".", ...targets.map((target) => (isTls ? `tls://${target}` : target))].join(" "),
    configBlock: [
      ...(isTls ? [`tls_servername ${String(serverName)}`] : []),
      ...(isTls && typeof bundle === "string" && bundle !== ""
        ? [`tls /etc/pki/${bundle}/ca-bundle.crt`]
        : []),
      `policy ${word(policy ?? usual, POLICIES, `${place}.policy`)}`,
    ].join("\n"),
  };
}

/** An address of `servers`, or an object of `upstreamResolvers`. */
function targetOf(upstream: unknown, place: string): string {
  if (typeof upstream === "string") return upstream;
  const { type, address, port } = partOf(upstream);
  if (type !== "Network") return "/etc/resolv.conf";
  if (typeof address !== "string" || address === "")
    throw new HelmValuesError(`${place}: 'address' is missing, which the type Network needs`);
  if (port === undefined || port === 0) return address;
  if (typeof port !== "number") throw new HelmValuesError(`${place}: 'port' is not a number`);
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

function cachePlugin({ positiveTTL, negativeTTL }: Part): Part {
  return {
    name: "cache",
    parameters: seconds(positiveTTL, POSITIVE_TTL, "cache.positiveTTL"),
    configBlock: `denial 9984 ${seconds(negativeTTL, NEGATIVE_TTL, "cache.negativeTTL")}`,
  };
}

function seconds(duration: unknown, usual: number, place: string): number {
  if (duration === undefined) return usual;
  const milliseconds = typeof duration === "string" ? parseGoDuration(duration) : undefined;
  if (milliseconds === undefined) throw new HelmValuesError(`${place}: a duration such as '1h' was expected`);
  return milliseconds < 500 ? usual : Math.round(milliseconds / 1000);
}

function word(given: unknown, words: Part, place: string): string {
  const found = words[typeof given === "string" && given !== "" ? given : (Object.keys(words)[0] ?? "")];
  if (typeof found !== "string")
    throw new HelmValuesError(`${place}: one of ${Object.keys(words).join(", ")} was expected`);
  return found;
}

function partOf(value: unknown): Part {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Part) : {};
}

function listOf(value: unknown): Part[] {
  return Array.isArray(value) ? value.map(partOf) : [];
}
