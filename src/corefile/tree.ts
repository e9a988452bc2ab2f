/** A Corefile as a tree: imports, snippets and environment filled in, every word with its place. */
import type { Span } from "./diagnostic.ts";
import type { Token } from "./tokens.ts";

export interface Corefile {
  /** Lines of blocks without a key, before all server blocks. They apply to the whole server. CoreDNS has none. */
  readonly globalOptions: readonly Directive[];
  /** In the order of the text. Snippets are not blocks. */
  readonly blocks: readonly ServerBlock[];
  /** Every file that was read, each once, the main file first. */
  readonly files: readonly string[];
}

/** One or more keys (`example.org:53`, `tls://.`) and their directives. */
export interface ServerBlock {
  /** At least one, none empty, separating commas removed. `server-key.ts` reads them. */
  readonly keys: readonly Token[];
  readonly directives: readonly Directive[];
  /** The keys on the first line. */
  readonly span: Span;
  /** `undefined` for a block without braces. */
  readonly closingBrace: Token | undefined;
}

/** A directive of a server block, and likewise each line of its block, to any depth. */
export interface Directive {
  readonly name: Token;
  readonly args: readonly Token[];
  /** The lines between the braces; `undefined` without braces, empty for `{ }`. */
  readonly block: readonly Directive[] | undefined;
  readonly closingBrace: Token | undefined;
}
