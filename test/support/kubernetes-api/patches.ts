/** The patches that kubectl sends: JSON merge patch (RFC 7396), and strategic merge patch as far as DNS objects need it. */
import { isRecord } from "./resource-types.ts";

/** The member that identifies the entries of a list; other lists are replaced as a whole. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  ports: "port",
  containers: "name",
  conditions: "type",
  podIPs: "ip",
  ownerReferences: "uid",
};

export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const merged: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = mergePatch(merged[key], value);
  }
  return merged;
}

export function strategicMergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  if (patch.$patch === "replace") return withoutDirectives(patch);
  const merged: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    // $setElementOrder and its like say in which order things stand, which means nothing here.
    if (key.startsWith("$")) continue;
    const mergeKey = MERGE_KEYS[key];
    if (value === null) delete merged[key];
    else if (Array.isArray(value) && mergeKey !== undefined)
      merged[key] = mergeLists(merged[key], value, mergeKey);
    else merged[key] = strategicMergePatch(merged[key], value);
  }
  return merged;
}

function mergeLists(target: unknown, patch: readonly unknown[], mergeKey: string): unknown[] {
  const merged: unknown[] = Array.isArray(target) ? [...target] : [];
  for (const entry of patch) {
    if (!isRecord(entry)) continue;
    const at = merged.findIndex((other) => isRecord(other) && other[mergeKey] === entry[mergeKey]);
    if (entry.$patch === "delete") {
      if (at >= 0) merged.splice(at, 1);
    } else if (at >= 0) merged[at] = strategicMergePatch(merged[at], entry);
    else merged.push(withoutDirectives(entry));
  }
  return merged;
}

function withoutDirectives(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !key.startsWith("$")));
}
