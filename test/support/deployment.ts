/** The objects of deploy/: those of the plain manifests and of the chart. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { nodeHost } from "../../src/corefile/node-host.ts";
import { type Configuration, readConfiguration } from "../../src/server/configuration/configuration.ts";
import { thisMachine } from "../../src/server/configuration/machine.ts";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";
import { renderChart } from "./helm-template.ts";
import { projectRoot } from "./portolan.ts";

const KUBERNETES = join(projectRoot, "deploy", "kubernetes");
export const CHART = join(projectRoot, "deploy", "helm", "portolan");

const TESTS = "templates/tests/";

/** Values that switch everything on, as far as it goes together. */
const EVERYTHING: Part = {
  service: { clusterIP: "CLUSTER_DNS_IP" },
  rbac: { pods: true, multicluster: true, istio: true },
  autoscaler: { enabled: true },
  networkPolicy: { enabled: true },
  serviceMonitor: { enabled: true },
  prometheusRule: { enabled: true },
};

const SCALER = "HorizontalPodAutoscaler portolan";

/** An object of Kubernetes, or a part of one. */
export type Part = { readonly [name: string]: unknown };

/** The part at a path such as `spec.template.spec` or `containers.0.name`. */
export function at(part: unknown, path: string): unknown {
  return path.split(".").reduce((value, name) => Object(value)[name], part);
}

/** The same, of what has to be an object or a list. */
export function partAt(part: unknown, path: string): Part {
  const found = at(part, path);
  if (typeof found !== "object" || found === null) throw new TypeError(`nothing at ${path}`);
  return found as Part;
}

export function nameOf(object: Part): string {
  return `${object.kind} ${at(object, "metadata.name")}`;
}

/** The object of this kind and name, such as `ClusterRole portolan`. */
export function objectCalled(objects: readonly Part[], name: string): Part {
  const found = objects.filter((object) => nameOf(object) === name);
  if (found[0] === undefined || found.length > 1) throw new Error(`${found.length} objects ${name}`);
  return found[0];
}

/** All manifests but kustomize's own file, the optional ones too. */
export function plainObjects(): Part[] {
  return globSync("**/*.yaml", { cwd: KUBERNETES })
    .filter((file) => basename(file) !== "kustomization.yaml")
    .sort()
    .flatMap((file) => readObjects(file, readFileSync(join(KUBERNETES, file), "utf8")));
}

export function defaultValues(): Part {
  return parse(readFileSync(join(CHART, "values.yaml"), "utf8"));
}

/** The objects that the chart becomes as release `portolan`, with these values in place of its own. */
export function chartObjects(values: Part = {}): Part[] {
  return Object.entries(renderedChart(values))
    .filter(([file]) => file.endsWith(".yaml") && !file.startsWith(TESTS))
    .flatMap(([file, text]) => readObjects(file, text));
}

/** The objects that `helm test` makes for a moment. */
export function chartTests(values: Part = {}): Part[] {
  return Object.entries(renderedChart(values))
    .filter(([file]) => file.startsWith(TESTS))
    .flatMap(([file, text]) => readObjects(file, text));
}

/** Helm's output after an installation. */
export function chartNotes(values: Part = {}): string {
  return renderedChart(values)["templates/NOTES.txt"] ?? "";
}

function renderedChart(values: Part): Record<string, string> {
  const files = Object.fromEntries(
    globSync("templates/**/*.*", { cwd: CHART }).map((file) => [
      file,
      readFileSync(join(CHART, file), "utf8"),
    ]),
  );
  const { appVersion } = parse(readFileSync(join(CHART, "Chart.yaml"), "utf8"));
  return renderChart(files, {
    Values: merge(defaultValues(), values),
    Release: { Name: "portolan", Namespace: "kube-system", Service: "Helm" },
    Chart: { AppVersion: appVersion },
    Files: { Get: (file: string) => readFileSync(join(CHART, file), "utf8") },
  });
}

/** Every object that the chart can make. The two autoscalers exclude each other. */
export function allChartObjects(): Part[] {
  return [...chartObjects(EVERYTHING), objectCalled(chartObjects({ hpa: { enabled: true } }), SCALER)];
}

/** As Helm merges values: objects name by name, everything else as a whole. */
function merge(under: Part, over: Part): Part {
  const merged: Record<string, unknown> = { ...under };
  for (const [name, value] of Object.entries(over)) {
    const [one, other] = [under[name], value];
    merged[name] = isObject(one) && isObject(other) ? merge(one, other) : value;
  }
  return merged;
}

function isObject(value: unknown): value is Part {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readObjects(file: string, text: string): Part[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors[0] !== undefined) throw new Error(`${file}: ${document.errors[0].message}`);
    const object = document.toJS();
    return object === null ? [] : [object];
  });
}

export function corefileOf(objects: readonly Part[]): string {
  return String(at(objectCalled(objects, "ConfigMap portolan"), "data.Corefile"));
}

/** @throws ConfigurationError */
export async function readCorefile(text: string): Promise<Configuration> {
  return readConfiguration(
    { text, file: "Corefile" },
    {
      host: nodeHost,
      registry: await PluginRegistry.builtIn(),
      machine: thisMachine(process.env),
      defaultPort: 53,
    },
  );
}

/** Labels of a selector, and what it is to find. */
export function assertSelects(labels: Part, object: Part): void {
  const own = partAt(object, "metadata.labels");
  for (const [name, value] of Object.entries(labels)) assert.equal(own[name], value, name);
}
