import type { Corefile, Directive } from "./tree.ts";

/**
 * Prints the content of a Corefile as one line of JSON that is the same for all ways to write it: imports and environment are
 * filled in, comments, spacing, line breaks and quotes do not matter, the order of blocks and directives does.
 * The `reload` plugin compares the SHA-512 of this text (docs/spec/coredns-behaviour.md#reload).
 */
export function canonicalDump(corefile: Corefile): string {
  const { globalOptions } = corefile;
  const blocks = corefile.blocks.map(({ keys, directives }) => ({
    keys: keys.map((key) => key.text),
    directives: directives.map(dumpDirective),
  }));
  return JSON.stringify(
    globalOptions.length === 0 ? blocks : [{ globalOptions: globalOptions.map(dumpDirective) }, ...blocks],
  );
}

/** Name and arguments, then an array with the lines of the block, if there is one. */
type DumpedDirective = (string | DumpedDirective[])[];

function dumpDirective({ name, args, block }: Directive): DumpedDirective {
  const dumped: DumpedDirective = [name.text, ...args.map((arg) => arg.text)];
  if (block !== undefined) dumped.push(block.map(dumpDirective));
  return dumped;
}
