/** Compares the pod's probes and times with `lameduck`: a mismatch loses queries in each rollout. */

import { memoryHost } from "../../corefile/host.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import type { PodTemplate, Probe } from "./capture.ts";
import { shellWord } from "./command-words.ts";
import type { Rule } from "./finding.ts";
import { kubectl, serverWorkload } from "./server-workload.ts";

/** Seconds for pending queries after lameduck. */
const MARGIN = 5;
/** Seconds until all nodes have removed an endpoint. */
const SPREAD = 2;

interface Fault {
  readonly who: string;
  readonly figure: string;
  readonly patch: object;
}

export const probes: Rule = (capture, _traffic, { doctor }) => {
  const { pod, last } = capture;
  if (pod === undefined) {
    const workload = serverWorkload(capture);
    const command = `portolan doctor ${doctor === "" ? "" : `${doctor} `}-manifest`;
    return [
      {
        code: "probes",
        reason:
          workload === undefined
            ? `the pod of the server is not known: give the manifest of its Deployment, DaemonSet or pod, with ${command} FILE`
            : `the manifest of the server is not known: ${kubectl("get", workload)} -o yaml | ${command} -`,
      },
    ];
  }
  if (last === undefined) return [{ code: "probes", reason: "the capture has no facts about the server" }];
  const corefile = readCorefile(last.configuration.text);
  const faults = [...faultsOf(pod, corefile)];
  if (faults.length === 0) return [];
  const [kind = "deployment", name = ""] = pod.owner.split("/");
  const ready = Math.max(corefile.lameduck, 10);
  return [
    {
      code: "probes",
      title: `probes and times of ${pod.namespace}/${pod.owner} do not fit lameduck ${corefile.lameduck} s: each rollout loses queries`,
      explanation:
        "A pod that ends must be out of the Service's endpoints on every node before it stops answering, and must not be killed before.",
      share: undefined,
      figures: { lameduck: corefile.lameduck, gracePeriod: pod.gracePeriod, faults: faults.length },
      causes: faults.map(({ who, figure }) => ({ who, figure })),
      remedies: [
        ...(faults.some(({ who }) => who === "lameduck")
          ? [{ text: "in the Corefile", patch: `health {\n    lameduck ${ready}s\n}` }]
          : []),
        ...faults
          .filter(({ patch }) => Object.keys(patch).length > 0)
          .map(({ who, patch }) => ({
            text: who,
            patch: `kubectl -n ${shellWord(pod.namespace)} patch ${kind} ${shellWord(name)} -p ${shellWord(JSON.stringify({ spec: { template: { spec: patch } } }))}`,
          })),
      ],
    },
  ];
};

function* faultsOf(pod: PodTemplate, { lameduck, hasReady, hasHealth }: CorefileFacts): Generator<Fault> {
  const { readiness, liveness, gracePeriod, preStopSleep } = pod;
  const container = (probe: object): object => ({ containers: [{ name: pod.container, ...probe }] });
  if (!hasHealth || lameduck === 0)
    yield {
      who: "lameduck",
      figure: "not configured: the server stops answering while nodes still send it queries",
      patch: {},
    };
  if (preStopSleep + lameduck + MARGIN > gracePeriod)
    yield {
      who: "terminationGracePeriodSeconds",
      figure: `${gracePeriod} s, and ${preStopSleep > 0 ? `a preStop of ${preStopSleep} s, ` : ""}lameduck of ${lameduck} s and ${MARGIN} s for queries under way do not go into it: the pod is killed`,
      patch: { terminationGracePeriodSeconds: Math.ceil(preStopSleep + lameduck + 2 * MARGIN) },
    };
  const wanted = {
    httpGet: { path: "/ready", port: 8181 },
    periodSeconds: 2,
    timeoutSeconds: 5,
    failureThreshold: 2,
  };
  if (readiness === undefined)
    yield {
      who: "readinessProbe",
      figure: "not configured: the pod gets queries before it has listed the cluster",
      patch: container({ readinessProbe: wanted }),
    };
  else if (readiness.path === "/health" || (hasReady && readiness.path !== "/ready"))
    yield {
      who: "readinessProbe",
      figure: `asks ${readiness.path === "" ? "not over HTTP" : readiness.path}, which says that the process is alive, and not that it can answer: /ready does`,
      patch: container({ readinessProbe: wanted }),
    };
  else if (lameduck > 0 && worst(readiness) + SPREAD > lameduck)
    yield {
      who: "readinessProbe",
      figure: `notices an end after ${worst(readiness)} s (periodSeconds ${readiness.period}, failureThreshold ${readiness.failures}), and lameduck is over after ${lameduck} s`,
      patch: container({ readinessProbe: { periodSeconds: 2, failureThreshold: 2 } }),
    };
  if (liveness?.path === "/ready")
    yield {
      who: "livenessProbe",
      figure: "asks /ready: the kubelet kills the server when the API of the cluster is away",
      patch: container({ livenessProbe: { httpGet: { path: "/health", port: 8080 } } }),
    };
  else if (liveness !== undefined && worst(liveness) < 10)
    yield {
      who: "livenessProbe",
      figure: `kills the server after ${worst(liveness)} s without an answer: a burst takes as long`,
      patch: container({ livenessProbe: { periodSeconds: 10, failureThreshold: 5, timeoutSeconds: 5 } }),
    };
}

/** Seconds until the probe has failed. */
function worst({ period, failures }: Probe): number {
  return period * failures;
}

interface CorefileFacts {
  /** Seconds. */
  readonly lameduck: number;
  readonly hasHealth: boolean;
  readonly hasReady: boolean;
}

function readCorefile(text: string): CorefileFacts {
  const { corefile } = parseCorefile(text, { file: "Corefile", host: memoryHost() });
  const directives = corefile.blocks.flatMap((block) => block.directives);
  const healths = directives.filter(({ name }) => name.text === "health");
  const options = healths.flatMap(({ block }) => block ?? []);
  const [lameduck] = options.find(({ name }) => name.text === "lameduck")?.args ?? [];
  return {
    lameduck: (parseGoDuration(lameduck?.text ?? "0") ?? 0) / 1000,
    hasHealth: healths.length > 0,
    hasReady: directives.some(({ name }) => name.text === "ready"),
  };
}
