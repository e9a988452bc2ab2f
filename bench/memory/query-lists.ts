/** Query files for the loads of the memory benchmark. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ClusterSize, shapeServices } from "../cluster/cluster-shape.ts";
import { CLUSTER_ZONE, EXTERNAL_ZONE, externalName } from "../names.ts";

/** @returns the path of a file with one query a line */
export function writeQueries(folder: string, name: string, queries: Iterable<string>): string {
  const path = join(folder, `${name}.queries`);
  writeFileSync(path, `${[...queries].join("\n")}\n`);
  return path;
}

export function* externalNames(count: number): Iterable<string> {
  for (let index = 0; index < count; index++) yield `${externalName(index)} A`;
}

/** Long names, so that each answer has some 100 octets. */
export function* longNames(count: number): Iterable<string> {
  for (let index = 0; index < count; index++)
    yield `${`${index}`.padStart(12, "0")}-of-a-deployment-with-a-long-name.namespace.${EXTERNAL_ZONE} A`;
}

export function* serviceNames(size: ClusterSize): Iterable<string> {
  for (const { name, namespace } of shapeServices(size)) yield `${name}.${namespace}.svc.${CLUSTER_ZONE} A`;
}

/** The queries of pods with `ndots:5` for external names, each from another namespace. */
export function* searchPaths(size: ClusterSize, count: number): Iterable<string> {
  const namespaces = [...new Set(shapeServices(size).map(({ namespace }) => namespace))];
  for (let index = 0; index < count; index++) {
    const host = externalName(index);
    const namespace = namespaces[index % namespaces.length];
    for (const name of [
      `${host}.${namespace}.svc.${CLUSTER_ZONE}`,
      `${host}.svc.${CLUSTER_ZONE}`,
      `${host}.${CLUSTER_ZONE}`,
      host,
    ]) {
      yield `${name} A`;
      yield `${name} AAAA`;
    }
  }
}

/** Names that were never queried before. */
export function* newNames(label: string, count: number): Iterable<string> {
  for (let index = 0; index < count; index++) yield `${label}-${index}.${EXTERNAL_ZONE} A`;
}
