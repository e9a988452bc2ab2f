import { dirname, resolve } from "node:path";
import type { ConfiguredBlock } from "../server/configuration/configuration.ts";

/** The manifest paths of the Corefile's `kubernetes` directives, made absolute. */
export function manifestPaths(blocks: readonly ConfiguredBlock[]): string[] {
  return blocks.flatMap(({ settings, directives }) =>
    directives
      .filter(({ name }) => name.text === "kubernetes")
      .flatMap(({ block }) => block ?? [])
      .filter(({ name }) => name.text === "manifests")
      .flatMap(({ args }) => args)
      .map(({ text, span }) => resolve(settings.root === "" ? dirname(span.file) : settings.root, text)),
  );
}
