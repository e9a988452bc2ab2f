import type { DiagnosticSink, Span } from "../../corefile/diagnostic.ts";
import type { Name } from "../../dns/name.ts";
import { POD_MODES } from "../../kubernetes/answers/cluster-view.ts";
import { isReverseZone, primaryZone } from "../../kubernetes/answers/cluster-zone.ts";
import { checkSource, SOURCE_OPTIONS } from "../../kubernetes/api/source-options.ts";
import { LabelSelector, LabelSelectorError } from "../../kubernetes/objects/label-selector.ts";
import { INVALID, overlooked } from "../../plugin/config/arguments.ts";
import type { Option } from "../../plugin/config/options.ts";
import {
  choice,
  directive,
  duration,
  fallthrough,
  flag,
  integer,
  option,
  optionList,
  required,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";

export const config = directive({
  args: { zones: zones() },
  options: {
    ...SOURCE_OPTIONS,
    apiserver_qps: single(queriesPerSecond()),
    apiserver_burst: single(apiLimit("apiserver_burst")),
    apiserver_max_inflight: single(apiLimit("apiserver_max_inflight")),
    namespaces: optionList({ namespace: rest(text("a namespace"), 1) }),
    namespace_labels: labelSelector(),
    labels: labelSelector(),
    pods: single(
      choice(POD_MODES, {
        problem: (word) => `wrong value for pods: ${word},  must be one of: disabled, verified, insecure`,
      }),
      "disabled",
    ),
    endpoint_pod_names: flag(),
    replicas_as_endpoints: flag(),
    ttl: single(
      integer({ min: 0, max: 3600, problem: (word) => `ttl must be in range [0, 3600]: ${word}` }),
      5,
      { overlook: true },
    ),
    noendpoints: flag(),
    fallthrough: fallthrough(),
    ignore: option({
      what: required(choice(["empty_service"], { problem: unknownIgnoreValue })),
      more: overlooked(),
    }),
    multicluster: option({ zones: zones([]) }),
    zonal: flag(),
    kube_dns: flag(),
    wildcards: flag(),
    snapshot: single(text("a file")),
    max_staleness: single(
      duration({ min: 1, problem: (word) => `max_staleness '${word}' is not a duration above 0` }),
    ),
    startup_timeout: single(
      duration({ min: 0, problem: (word) => `failed to parse startup_timeout: '${word}' is not a duration` }),
      5000,
    ),
  },
  check(values, report, at) {
    checkZones(values.zones, values.multicluster?.zones, report, at);
    if (values.namespaces.length > 0 && values.namespace_labels !== undefined) {
      const message = "namespaces and namespace_labels cannot both be set";
      report.error("KUBERNETES_TWO_NAMESPACE_SELECTIONS", at("namespace_labels"), message);
    }
    if (values.zonal && values.noendpoints) {
      const message = "zonal requires the endpoint cache; remove noendpoints";
      report.error("KUBERNETES_ZONAL_WITHOUT_ENDPOINTS", at("zonal"), message);
    }
    if (values.kube_dns && values.multicluster !== undefined) {
      const message = "kube_dns and multicluster cannot both be set: kube-dns knew one cluster";
      report.error("KUBERNETES_KUBE_DNS_MULTICLUSTER", at("kube_dns"), message);
    }
    checkSource(values, report, at);
    if (values.replicas_as_endpoints && values.manifests.length === 0) {
      const message = "'replicas_as_endpoints' has no effect without 'manifests': a cluster makes the pods";
      report.warning("KUBERNETES_REPLICAS_WITHOUT_MANIFESTS", at("replicas_as_endpoints"), message);
    }
    warnOfSeveralEndpoints(values.endpoint?.url ?? [], report, at);
  },
});

type At = (option?: string) => Span;

function checkZones(own: ZoneList, multicluster: ZoneList | undefined, report: DiagnosticSink, at: At): void {
  const primary = primaryZone(own.zones);
  if (primary !== undefined && isReverseZone(primary)) {
    const message = `no zone for the names of Services: PTR records lead to names such as web.default.svc.${primary}`;
    const expected = "another zone, such as cluster.local";
    report.warning("KUBERNETES_ONLY_REVERSE_ZONES", at(), message, { expected });
  }
  if (primary === undefined) {
    report.error("KUBERNETES_NO_FORWARD_ZONE", at(), "non-reverse zone name must be used", {
      expected: "at least one zone such as cluster.local",
    });
  }
  if (multicluster === undefined) return;
  for (const zone of multicluster.zones) {
    if (own.zones.some((other) => other.equals(zone))) continue;
    const known = own.zones.map((name: Name) => name.toString()).join(" ");
    const message = `is not authoritative for the multicluster zone ${zone} (authoritative zones: [${known}])`;
    report.error("KUBERNETES_FOREIGN_MULTICLUSTER_ZONE", at("multicluster"), message);
  }
}

/** CoreDNS before 1.4.0 spread its requests over all of them. */
function warnOfSeveralEndpoints(urls: readonly string[], report: DiagnosticSink, at: At): void {
  const [first] = urls;
  if (first === undefined || urls.length === 1) return;
  const message = `CoreDNS uses the first of several URLs alone since 1.4.0, and this server all of them: write 'endpoint ${first}', or the address of a load balancer`;
  report.warning("KUBERNETES_SEVERAL_ENDPOINTS", at("endpoint"), message);
}

function unknownIgnoreValue(word: string): string {
  return `unable to parse ignore value: '${word}'`;
}

/** The client library of CoreDNS accepts fractions. */
function queriesPerSecond(): Value<number> {
  return {
    expected: "a number of 0 or more",
    parse(word) {
      const value = /^\+?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(word) ? Number(word) : Number.NaN;
      if (Number.isFinite(value)) return value;
      return new ValueProblem(
        word.startsWith("-") ? "apiserver_qps must be >= 0" : `invalid apiserver_qps "${word}": not a number`,
      );
    },
  };
}

function apiLimit(name: string) {
  const problem = (word: string) =>
    /^-\d+$/.test(word) ? `${name} must be >= 0` : `invalid ${name} "${word}": not a whole number`;
  return integer({ min: 0, problem });
}

/** A label selector, which may span several words. If the option is repeated, the last line counts. */
function labelSelector(): Option<LabelSelector | undefined> {
  const words = option({ expression: rest(text("a label selector such as app=web,tier in (a,b)"), 1) });
  return {
    read(lines, context) {
      const read = words.read(lines, context);
      if (read === INVALID || read === undefined) return read;
      try {
        return LabelSelector.parse(read.expression.join(" "));
      } catch (error) {
        const line = lines.at(-1);
        if (!(error instanceof LabelSelectorError) || line === undefined) throw error;
        const message = `unable to parse label selector value: '${error.text}': ${error.reason}`;
        context.report.error("KUBERNETES_BAD_LABEL_SELECTOR", line.name.span, message);
        return INVALID;
      }
    },
    usage: "EXPRESSION",
  };
}
