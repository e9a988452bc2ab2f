/** A note of the migration on one word of a Corefile. */
import type { Span } from "../../corefile/diagnostic.ts";

export type NoticeSeverity = "deprecated" | "ignored" | "removed" | "newdefault" | "unsupported" | "changed";

export interface Notice {
  readonly severity: NoticeSeverity;
  readonly plugin: string;
  readonly option?: string;
  /** The version of CoreDNS with the change. */
  readonly version: string;
  readonly replacedBy?: string;
  /** Further explanations. */
  readonly notes: readonly string[];
  /** Absent if the notice refers to no part of the text. */
  readonly span?: Span;
}

/** The sentence of the notice. */
export function sentenceOf({ severity, plugin, option, version, replacedBy }: Notice): string {
  const what = option === undefined ? `Plugin "${plugin}"` : `Option "${option}" in plugin "${plugin}"`;
  const behind = replacedBy === undefined ? "" : ` It is replaced by "${replacedBy}".`;
  switch (severity) {
    case "newdefault":
      return `${what} is added as a default in ${version}.`;
    case "unsupported":
      return `${what} is not known in ${version}.`;
    case "changed":
      return `${what} behaves differently.`;
    default:
      return `${what} is ${severity} in ${version}.${behind}`;
  }
}

export interface Migrated {
  readonly text: string;
  readonly notices: readonly Notice[];
}
