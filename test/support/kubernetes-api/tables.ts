/** Objects as tables, the form that kubectl requests for printing. */
import { type ApiObject, apiVersionOf, type ResourceType } from "./resource-types.ts";

export function toTable(
  type: ResourceType,
  objects: readonly ApiObject[],
  metadata: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const names = ["Name", ...type.columns.map(({ name }) => name), "Age"];
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: names.map((name) => ({
      name,
      type: "string",
      format: name === "Name" ? "name" : "",
      description: "",
      priority: 0,
    })),
    rows: objects.map((object) => ({
      cells: [object.metadata.name, ...type.columns.map(({ cell }) => cell(object)), age(object)],
      object: { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata },
    })),
  };
}

/** A single object as a list, without its type in every item, as the API server writes lists. */
export function toList(
  type: ResourceType,
  objects: readonly ApiObject[],
  metadata: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const items = objects.map(({ apiVersion: _, kind: __, ...rest }) => rest);
  return { kind: `${type.kind}List`, apiVersion: apiVersionOf(type), metadata, items };
}

function age({ metadata: { creationTimestamp } }: ApiObject): string {
  if (creationTimestamp === undefined) return "<unknown>";
  return `${Math.max(0, Math.round((Date.now() - Date.parse(creationTimestamp)) / 1000))}s`;
}
