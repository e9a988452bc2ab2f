/** A Corefile as a tree: imports, snippets and environment filled in, every word with its place. */
import type { Span } from "./diagnostic.ts";
import type { Token } from "./tokens.ts";

export interface Corefile {
  /** Lines of blocks without a key, in front of all server blocks: they are for the whole server. CoreDNS has none. */
  readonly globalOptions: readonly Directive[];
  /** In the order of the text. Snippets are no blocks. */
  readonly blocks: readonly ServerBlock[];
  /** Every file that was read, each once, the main one first. */
  readonly files: readonly string[];
}

/** One or more keys (`example.org:53`, `tls://.`) and what is to be done for them. */
export interface ServerBlock {
  /** At least one, none of them empty, separating commas removed. `server-key.ts` reads them. */
  readonly keys: readonly Token[];
  readonly directives: readonly Directive[];
  /** The keys, as far as they stand on one line. */
  readonly span: Span;
  /** Undefined for a block that is written without braces. */
  readonly closingBrace: Token | undefined;
}

/** A directive of a server block, and likewise each line of its block, to any depth. */
export interface Directive {
  readonly name: Token;
  readonly args: readonly Token[];
  /** The lines between the braces; undefined where there are no braces, empty for `{ }`. */
  readonly block: readonly Directive[] | undefined;
  readonly closingBrace: Token | undefined;
}
