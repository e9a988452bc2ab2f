/** Label and field selectors of lists and watches. */
import { LabelSelector, LabelSelectorError } from "../../../src/kubernetes/objects/label-selector.ts";
import { badRequest } from "./api-error.ts";
import { type ApiObject, text } from "./resource-types.ts";

export type Selection = (object: ApiObject) => boolean;

/** The selection of the query parameters and of the path's namespace. */
export function parseSelection(namespace: string, parameters: URLSearchParams): Selection {
  const labels = parseLabels(parameters.get("labelSelector") ?? "");
  const fields = parseFields(parameters.get("fieldSelector") ?? "");
  return (object) =>
    (namespace === "" || object.metadata.namespace === namespace) &&
    labels.matches(new Map(Object.entries(object.metadata.labels ?? {}))) &&
    fields.every((field) => field(object));
}

function parseLabels(selector: string): LabelSelector {
  try {
    return LabelSelector.parse(selector);
  } catch (error) {
    if (error instanceof LabelSelectorError) throw badRequest(error.message);
    throw error;
  }
}

/** `path=value`, `path==value`, `path!=value`, joined by commas. */
function parseFields(selector: string): Selection[] {
  return selector
    .split(",")
    .filter((term) => term !== "")
    .map((term) => {
      const match = /^([\w.]+)(==|!=|=)(.*)$/.exec(term);
      if (match === null) throw badRequest(`invalid field selector: ${term}`);
      const [, path = "", operator, value] = match;
      const members = path.split(".");
      return (object) => (text(object, ...members) === value) !== (operator === "!=");
    });
}
