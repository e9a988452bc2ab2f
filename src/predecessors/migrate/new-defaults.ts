/** The lines that later versions of CoreDNS added to the default Corefile of clusters (docs/spec/kube-dns.md#installers). */
import { type CorefileLine, line } from "../../corefile/history/line.ts";
import type { Directive, ServerBlock } from "../../corefile/tree.ts";

export interface NewDefault {
  readonly version: string;
  readonly plugin: string;
  readonly option?: string;
  /** The parent of the new line: a server block, or the directive of that name. */
  readonly line: CorefileLine;
  /** Whether a server block should get it. */
  readonly wants: (block: ServerBlock) => boolean;
}

const named = (name: string) => (directive: Directive) => directive.name.text === name;
const forwards = ({ directives }: ServerBlock): boolean =>
  directives.some(({ name }) => ["forward", "proxy", "grpc"].includes(name.text));

export const NEW_DEFAULTS: readonly NewDefault[] = [
  {
    version: "1.2.1",
    plugin: "loop",
    line: line(["loop"]),
    wants: (block) => forwards(block) && !block.directives.some(named("loop")),
  },
  {
    version: "1.5.0",
    plugin: "ready",
    line: line(["ready"]),
    wants: ({ directives }) => directives.some(named("kubernetes")) && !directives.some(named("ready")),
  },
  {
    version: "1.6.5",
    plugin: "health",
    option: "lameduck",
    line: line(["lameduck", "5s"]),
    wants: () => true,
  },
  {
    version: "1.7.0",
    plugin: "forward",
    option: "max_concurrent",
    line: line(["max_concurrent", "1000"]),
    wants: () => true,
  },
];

/** The directives of a block that need an added option. */
export function directivesWithout(block: ServerBlock, plugin: string, option: string): Directive[] {
  return block.directives.filter(
    (directive) =>
      directive.name.text === plugin && !(directive.block ?? []).some(({ name }) => name.text === option),
  );
}
