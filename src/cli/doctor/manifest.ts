/** Reads the server's pod from its manifest: probes, periods, limits. */
import type { PodTemplate, Probe } from "../../console/doctor/capture.ts";
import { parseDocuments } from "../../kubernetes/manifests/parse-documents.ts";
import { isObject, listMember, member, textMember } from "../../kubernetes/objects/json.ts";
import { FlagError } from "../flag-table.ts";

/**
 * Finds the first object in the text that is a pod or makes pods.
 * @throws FlagError
 */
export function readPodTemplate(text: string, file: string): PodTemplate {
  for (const document of parseDocuments(text)) {
    if (!("value" in document))
      throw new FlagError(`-manifest ${file}:${document.line}: ${document.problem}`, 2, false);
    for (const object of itemsOf(document.value)) {
      const template = templateOf(object);
      if (template !== undefined) return template;
    }
  }
  throw new FlagError(`-manifest ${file}: holds no Deployment, DaemonSet, StatefulSet or Pod`, 2, false);
}

function itemsOf(value: unknown): readonly unknown[] {
  return textMember(value, "kind").endsWith("List") ? listMember(value, "items") : [value];
}

const OWNERS = new Set(["Deployment", "DaemonSet", "StatefulSet"]);
/** Default of Kubernetes, in seconds. */
const GRACE = 30;

function templateOf(object: unknown): PodTemplate | undefined {
  const kind = textMember(object, "kind");
  if (kind !== "Pod" && !OWNERS.has(kind)) return undefined;
  const spec = member(object, "spec");
  const pod = kind === "Pod" ? spec : member(member(spec, "template"), "spec");
  const metadata = member(object, "metadata");
  const containers = listMember(pod, "containers");
  const container = containers.find(hasDnsPort) ?? containers[0];
  return {
    owner: `${kind.toLowerCase()}/${textMember(metadata, "name")}`,
    namespace: textMember(metadata, "namespace") || "default",
    gracePeriod: number(pod, "terminationGracePeriodSeconds", GRACE),
    preStopSleep: preStopSleep(member(member(container, "lifecycle"), "preStop")),
    container: textMember(container, "name"),
    readiness: probeOf(member(container, "readinessProbe")),
    liveness: probeOf(member(container, "livenessProbe")),
    memoryLimit: quantity(member(member(member(container, "resources"), "limits"), "memory")),
  };
}

function hasDnsPort(container: unknown): boolean {
  return listMember(container, "ports").some((port) => member(port, "containerPort") === 53);
}

/** With the defaults of Kubernetes. */
function probeOf(probe: unknown): Probe | undefined {
  if (!isObject(probe)) return undefined;
  return {
    path: textMember(member(probe, "httpGet"), "path"),
    period: number(probe, "periodSeconds", 10),
    failures: number(probe, "failureThreshold", 3),
    timeout: number(probe, "timeoutSeconds", 1),
  };
}

function preStopSleep(hook: unknown): number {
  const seconds = number(member(hook, "sleep"), "seconds", 0);
  if (seconds > 0) return seconds;
  const words = listMember(member(hook, "exec"), "command").join(" ");
  return Number(/\bsleep\s+(\d+)/.exec(words)?.[1] ?? 0);
}

function number(value: unknown, name: string, otherwise: number): number {
  const found = member(value, name);
  return typeof found === "number" && Number.isFinite(found) && found >= 0 ? found : otherwise;
}

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** Bytes of a quantity such as `170Mi`. */
function quantity(value: unknown): number | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)(k|M|G|T|Ki|Mi|Gi|Ti)?$/.exec(String(value)) ?? [];
  return digits === undefined ? undefined : Number(digits) * (UNITS[unit] ?? 1);
}
