/** Names as keys of etcd: the labels from right to left, separated by slashes (docs/spec/kube-dns.md#keys). */
import { Name, NameError } from "../../dns/name.ts";

/** `skydns` -> `/skydns`, with any surrounding slashes. */
export function normalisePrefix(path: string): string {
  const segments = path.split("/").filter((segment) => segment !== "");
  return segments.map((segment) => `/${segment}`).join("");
}

/** `x1.a.example.org.` -> `/skydns/org/example/a/x1`, in lower case, one character per octet. */
export function keyOfName(prefix: string, name: Name): string {
  let key = prefix;
  for (let index = name.labelCount - 1; index >= 0; index--) key += `/${name.labelText(index)}`;
  return key;
}

/** The name of a key; `undefined` for a key that is not a name's. */
export function nameOfKey(prefix: string, key: string): Name | undefined {
  if (!key.startsWith(`${prefix}/`)) return undefined;
  const labels = key.slice(prefix.length + 1).split("/");
  try {
    return Name.fromLabels(labels.reverse());
  } catch (error) {
    if (error instanceof NameError) return undefined;
    throw error;
  }
}

/** Where to read for a name with wildcards, and which of the found keys match. */
export interface KeyPattern {
  /** The key up to the first wildcard. */
  readonly top: string;
  /** The labels after it, from the right; `*` and `any` match every label. */
  readonly labels: readonly string[];
}

const WILDCARDS: ReadonlySet<string> = new Set(["*", "any"]);

/** The pattern of a name, `undefined` for one without wildcard. */
export function patternOfName(prefix: string, name: Name): KeyPattern | undefined {
  let top = prefix;
  for (let index = name.labelCount - 1; index >= 0; index--) {
    const label = name.labelText(index);
    if (WILDCARDS.has(label)) {
      const labels: string[] = [];
      for (let rest = index; rest >= 0; rest--) labels.push(name.labelText(rest));
      return { top, labels };
    }
    top += `/${label}`;
  }
  return undefined;
}

/** Whether a key below `top` matches: it has all the labels, and may have more after them. */
export function matchesPattern({ top, labels }: KeyPattern, key: string): boolean {
  const segments = key.slice(top.length + 1).split("/");
  if (segments.length < labels.length) return false;
  return labels.every((label, index) => WILDCARDS.has(label) || label === segments[index]);
}
