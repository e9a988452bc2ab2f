/**
 * Directives that are read as if the Corefile had other words. Tests of a configuration put their own upstreams and
 * files in place of the real ones with this, and leave the text as it is.
 */
import type { Directive } from "../../corefile/tree.ts";
import { type PluginEntry, PluginRegistry } from "./plugin-registry.ts";

/** Returns the directive to read instead. */
export type Substitute = (directive: Directive) => Directive;

/** A registry with the same plugins; some of them read their lines through a substitute. */
export function withSubstitutes(
  registry: PluginRegistry,
  substitutes: ReadonlyMap<string, Substitute>,
): PluginRegistry {
  // The first registry loads all modules, wherever they come from.
  const entries = registry.entries.map(({ name, module, isPinned = false }) => ({ name, module, isPinned }));
  const load = async ({ name }: PluginEntry): Promise<unknown> => {
    const definition = await registry.definition(name);
    const substitute = substitutes.get(name);
    if (substitute === undefined) return definition;
    const { config } = definition;
    return {
      ...definition,
      config: {
        description: config.description,
        parse: (occurrences: readonly Directive[], context: Parameters<typeof config.parse>[1]) =>
          config.parse(occurrences.map(substitute), context),
      },
    };
  };
  return new PluginRegistry(entries, { load, budget: registry.budget });
}

/** A directive with other arguments. They take the places of the words that they replace, as far as these go. */
export function withArguments(directive: Directive, texts: readonly string[]): Directive {
  return {
    ...directive,
    args: texts.map((text, index) => {
      const place = directive.args[index] ?? directive.name;
      return place.text === text ? place : { ...place, kind: "word", text, raw: text };
    }),
  };
}

/** A directive without the lines of these names in its block, and with other lines at the end. */
export function withLines(
  directive: Directive,
  dropped: readonly string[],
  added: readonly (readonly string[])[],
): Directive {
  const kept = (directive.block ?? []).filter(({ name }) => !dropped.includes(name.text));
  const lines = added.map(([name = "", ...texts]) =>
    withArguments(
      {
        name: { ...directive.name, text: name, raw: name },
        args: [],
        block: undefined,
        closingBrace: undefined,
      },
      texts,
    ),
  );
  return { ...directive, block: [...kept, ...lines] };
}
