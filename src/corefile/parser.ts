/**
 * Parses the text of a Corefile into its tree (docs/spec/coredns-behaviour.md#grammar). Collects faults, and continues after each
 * if the intent is clear, so that one run reports them all. A tree with errors is for tools only; no server starts from one.
 */
import { splitGluedBrace } from "./brace-hints.ts";
import {
  type Diagnostic,
  type DiagnosticDetails,
  DiagnosticSink,
  formatPlace,
  quoteText,
  type Span,
} from "./diagnostic.ts";
import type { CorefileDiagnosticCode } from "./diagnostic-codes.ts";
import { type Body, DirectiveReader, UNEXPECTED_CLOSING_BRACE } from "./directive-reader.ts";
import type { CorefileHost } from "./host.ts";
import { Importer, isImport, snippetName } from "./importer.ts";
import { TokenStream } from "./token-stream.ts";
import type { Token } from "./tokens.ts";
import type { Corefile, Directive, ServerBlock } from "./tree.ts";

export interface ParseOptions {
  /** Path of the text, for diagnostics and as the base of relative imports. */
  readonly file: string;
  readonly host: CorefileHost;
  /** The known directives; without it, any name is accepted. */
  readonly directives?: Iterable<string> | undefined;
  readonly limits?: Partial<ParseLimits> | undefined;
}

export interface ParseLimits {
  /** Words of the Corefile, imported texts counted each time. Default 500,000. */
  readonly tokens: number;
  /** Default 10,000, as CoreDNS. */
  readonly snippetExpansions: number;
  /** Default 100,000, as CoreDNS. */
  readonly fileExpansions: number;
  /** Depth of nested blocks below a server block. Default 32. */
  readonly nesting: number;
  /** Errors after which the rest is not read. Default 500. */
  readonly errors: number;
}

export interface ParseResult {
  readonly corefile: Corefile;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads a Corefile. Never throws, whatever the text; {@link ParseResult.diagnostics} has the faults. */
export function parseCorefile(text: string, options: ParseOptions): ParseResult {
  return new Parser(text, options).run();
}

const DEFAULT_LIMITS: ParseLimits = {
  tokens: 500_000,
  snippetExpansions: 10_000,
  fileExpansions: 100_000,
  nesting: 32,
  errors: 500,
};

/** The global option that adds a plugin, `plugin NAME MODULE`: its first argument becomes a known directive. */
const PLUGIN_OPTION = "plugin";

const EMPTY_BODY: Body = { directives: [], closingBrace: undefined, nextKeys: undefined };

/** The words before a block: its keys as written, and its brace if it has one. */
interface Heading {
  readonly words: readonly Token[];
  readonly brace: Token | undefined;
  /** Whether the block is already closed, because its two braces are one word. */
  readonly isClosed: boolean;
}

class Parser {
  readonly #sink = new DiagnosticSink();
  readonly #stream: TokenStream;
  readonly #importer: Importer;
  readonly #reader: DirectiveReader;
  readonly #directiveNames: Set<string> | undefined;
  readonly #globalOptions: Directive[] = [];
  readonly #blocks: ServerBlock[] = [];
  readonly #filesWithBraceOnNextLine = new Set<string>();

  constructor(text: string, options: ParseOptions) {
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    const { host } = options;
    const sink = this.#sink;
    this.#directiveNames = options.directives === undefined ? undefined : new Set(options.directives);
    this.#stream = new TokenStream({
      sink,
      environmentVariable: (name) => host.environmentVariable(name),
      tokenLimit: limits.tokens,
      errorLimit: limits.errors,
    });
    this.#importer = new Importer({
      host,
      sink,
      stream: this.#stream,
      tokenLimit: limits.tokens,
      snippetExpansionLimit: limits.snippetExpansions,
      fileExpansionLimit: limits.fileExpansions,
    });
    this.#reader = new DirectiveReader({
      stream: this.#stream,
      importer: this.#importer,
      sink,
      directiveNames: this.#directiveNames,
      nestingLimit: limits.nesting,
    });
    this.#importer.start(options.file, text);
  }

  run(): ParseResult {
    let nextKeys: readonly Token[] | undefined;
    for (let token = this.#stream.peek(); token !== undefined; token = this.#stream.peek()) {
      if (token.kind === "closing-brace" && nextKeys === undefined) {
        this.#stream.next();
        this.#reportStrayClosing(token);
      } else {
        nextKeys = this.#readStatement(nextKeys ?? []);
      }
    }
    const { tooFaultyAt } = this.#stream;
    if (tooFaultyAt !== undefined) {
      this.#error("COREFILE_TOO_MANY_ERRORS", tooFaultyAt, "too many errors: the rest is not checked");
    }
    return {
      corefile: { globalOptions: this.#globalOptions, blocks: this.#blocks, files: this.#importer.files },
      diagnostics: this.#sink.diagnostics,
    };
  }

  /** Reads a snippet or a server block; returns the keys of the next one if those are already read. */
  #readStatement(given: readonly Token[]): readonly Token[] | undefined {
    const heading = this.#readHeading(given);
    const [first] = heading.words;
    if (first === undefined) {
      return heading.brace === undefined ? undefined : this.#readBlockWithoutKey(heading.brace);
    }
    if (heading.words.length === 1 && snippetName(first.text) !== undefined) {
      this.#readSnippet(first, heading.brace);
      return undefined;
    }
    if (this.#isDirectiveOutsideBlock(first, heading)) {
      this.#reportOutsideBlock(first);
      // Its lines are read like the options of a directive.
      if (heading.brace !== undefined) this.#reader.readBody({ ...heading, heading: first, level: 1 });
      return undefined;
    }
    const keys = this.#keysOf(heading);
    const body = heading.isClosed
      ? EMPTY_BODY
      : this.#reader.readBody({ ...heading, heading: first, level: 0 });
    if (keys.length > 0) this.#addBlock(heading, keys, body);
    return body.nextKeys;
  }

  #readHeading(given: readonly Token[]): Heading {
    const words = [...given];
    for (;;) {
      const token = this.#stream.peek();
      const comma = words.at(-1)?.text.endsWith(",") ? words.at(-1) : undefined;
      if (token === undefined) {
        if (comma !== undefined) this.#reportEndAfterComma(comma);
        break;
      }
      if (words.length > 0 && token.startsLine && comma === undefined) break;
      if (token.kind === "opening-brace") {
        if (comma !== undefined) this.#reportExtraComma(comma);
        this.#stream.next();
        return { words, brace: token, isClosed: false };
      }
      if (token.kind === "closing-brace") break;
      this.#stream.next();
      if (isImport(token) && (words.length === 0 || token.startsLine)) {
        this.#importer.expand(token);
      } else {
        words.push(token);
      }
    }
    const isClosed = this.#dropGluedBraces(words);
    const brace = isClosed ? undefined : (this.#gluedBrace(words) ?? this.#braceOnNextLine(words));
    for (const word of words) this.#reader.hints.noteWord(word);
    return { words, brace, isClosed };
  }

  #dropGluedBraces(words: Token[]): boolean {
    const last = words.at(-1);
    if (words.length < 2 || last?.raw !== "{}" || last.quoted) return false;
    this.#error(
      "COREFILE_MISSING_SPACE_BEFORE_BRACE",
      last.span,
      "'{}' is one word, so it is a key and no block",
      { expected: "a space between the braces: '{ }'" },
    );
    words.pop();
    return true;
  }

  #gluedBrace(words: Token[]): Token | undefined {
    const last = words.at(-1);
    const split = last === undefined ? undefined : splitGluedBrace(last);
    if (last === undefined || split === undefined) return undefined;
    this.#error(
      "COREFILE_MISSING_SPACE_BEFORE_BRACE",
      split.brace.span,
      `the brace is part of the key ${quoteText(last.text)}, so it opens no block`,
      { expected: `a space before the brace: ${quoteText(`${split.word.raw} {`)}` },
    );
    words[words.length - 1] = split.word;
    return split.brace;
  }

  #braceOnNextLine(words: readonly Token[]): Token | undefined {
    const token = this.#stream.peek();
    const key = words.at(-1);
    if (token?.kind !== "opening-brace" || key === undefined) return undefined;
    this.#stream.next();
    // A file with one such brace usually has all of them there, and the server accepts them.
    if (this.#filesWithBraceOnNextLine.has(token.span.file)) return token;
    this.#filesWithBraceOnNextLine.add(token.span.file);
    this.#sink.warning(
      "COREFILE_BRACE_ON_NEXT_LINE",
      token.span,
      `the brace belongs to ${quoteText(key.text)} but is on its own line`,
      { expected: `the brace on the same line: ${quoteText(`${key.raw} {`)}` },
    );
    return token;
  }

  #readSnippet(heading: Token, brace: Token | undefined): void {
    if (brace === undefined) {
      const next = this.#stream.peek();
      const found = next === undefined ? "the end of the file" : quoteText(next.text);
      this.#error(
        "COREFILE_SNIPPET_WITHOUT_BRACES",
        heading.span,
        `Syntax error: Unexpected token ${found}, expecting '{': snippet ${quoteText(heading.text)} has no braces`,
        { expected: `${quoteText(`${heading.raw} {`)}, its lines, and a line with '}'` },
      );
      return;
    }
    const body = this.#stream.takeBlock();
    if (body !== undefined) {
      this.#importer.define(heading, body);
    } else if (!this.#stream.aborted && !this.#importer.hasUnterminatedQuote) {
      this.#error(
        "COREFILE_MISSING_CLOSING_BRACE",
        brace.span,
        `Unexpected EOF: snippet ${quoteText(heading.text)} is never closed`,
        { expected: "a line with '}' at the end of the snippet", notes: this.#reader.hints.notes() },
      );
    }
  }

  #readBlockWithoutKey(brace: Token): readonly Token[] | undefined {
    const inside = this.#stream.peek();
    if (inside?.kind === "word" && inside.text === PLUGIN_OPTION && !this.#isDirectiveName(inside)) {
      this.#readGlobalOptions(brace);
      return undefined;
    }
    this.#error("COREFILE_MISSING_KEY", brace.span, "this server block has no key", {
      expected: "a zone before the brace, `.` for all names: '. {'",
    });
    return this.#reader.readBody({ brace, heading: brace, level: 0 }).nextKeys;
  }

  /** The words that the options add are directives from here on. */
  #readGlobalOptions(brace: Token): void {
    if (this.#blocks.length > 0) {
      this.#error("COREFILE_GLOBAL_OPTIONS_PLACE", brace.span, "global options come after a server block", {
        expected: "this block at the beginning of the file",
      });
    }
    const { directives } = this.#reader.readBody({ brace, heading: brace, level: 1 });
    for (const { name, args } of directives) {
      const [added] = args;
      if (name.text === PLUGIN_OPTION && added !== undefined) this.#directiveNames?.add(added.text);
    }
    this.#globalOptions.push(...directives);
  }

  /** Removes commas, and leaves out empty keys. CoreDNS does so, too, and thereby loses blocks silently. */
  #keysOf(heading: Heading): Token[] {
    const keys: Token[] = [];
    const empty: Token[] = [];
    for (const word of heading.words) {
      const key = word.text.endsWith(",") ? withoutComma(word) : word;
      (key.text === "" ? empty : keys).push(key);
    }
    for (const key of empty) {
      const notes = key.raw === "" ? [] : [`${quoteText(key.raw)} has no value`];
      const details = { expected: "a zone such as `example.org`, or `.` for all names", notes };
      if (keys.length === 0) {
        this.#error(
          "COREFILE_EMPTY_KEY",
          key.span,
          "the server block's key is empty, so it would serve nothing",
          details,
        );
      } else {
        this.#sink.warning(
          "COREFILE_EMPTY_KEY",
          key.span,
          "this key is empty and counts for nothing",
          details,
        );
      }
    }
    return keys;
  }

  #addBlock(heading: Heading, keys: readonly Token[], body: Body): void {
    const [first] = keys;
    if (first === undefined) return;
    let span = first.span;
    for (const { span: next } of keys) {
      if (next.line !== span.line || next.file !== span.file || next.column < span.column) break;
      span = { ...span, length: next.column + next.length - span.column };
    }
    if (heading.brace !== undefined && this.#isDirectiveName(first) && !holdsDirectives(body)) {
      this.#sink.warning(
        "COREFILE_KEY_IS_DIRECTIVE_NAME",
        first.span,
        `this serves a zone called ${quoteText(`${first.text}.`)}, which is also the name of a directive`,
        {
          notes: [
            `write ${quoteText(`${first.text}.`)} if a zone is meant, or move the directive into a server block`,
          ],
        },
      );
    }
    this.#blocks.push({ keys, directives: body.directives, span, closingBrace: body.closingBrace });
  }

  #isDirectiveName(token: Token): boolean {
    return this.#directiveNames?.has(token.text) ?? false;
  }

  /**
   * CoreDNS takes such a line for the keys of a server block. A zone may have the name of a directive, though: then its block holds
   * directives, while the block of a directive holds options.
   */
  #isDirectiveOutsideBlock(first: Token, heading: Heading): boolean {
    if (!this.#isDirectiveName(first)) return false;
    if (heading.brace === undefined) return true;
    const inside = this.#stream.peek();
    return inside?.kind === "word" && !isImport(inside) && !this.#isDirectiveName(inside);
  }

  #reportOutsideBlock(first: Token): void {
    const notes: string[] = [];
    const before = this.#blocks.at(-1);
    const closing = before?.closingBrace;
    if (before !== undefined && closing !== undefined) {
      const key = before.keys[0]?.text ?? "";
      notes.push(`the server block of ${quoteText(key)} before it is closed at ${formatPlace(closing.span)}`);
    }
    this.#error(
      "COREFILE_DIRECTIVE_OUTSIDE_BLOCK",
      first.span,
      `directive ${quoteText(first.text)} is outside a server block`,
      {
        expected: "the directive between the braces of a server block, as in '. {'",
        notes: [...notes, ...this.#reader.hints.notes()],
      },
    );
  }

  #reportStrayClosing(brace: Token): void {
    const notes = this.#reader.hints.notes();
    const before = this.#blocks.at(-1)?.closingBrace;
    if (before !== undefined)
      notes.unshift(`the last server block is already closed at ${formatPlace(before.span)}`);
    this.#error("COREFILE_UNEXPECTED_CLOSING_BRACE", brace.span, UNEXPECTED_CLOSING_BRACE, { notes });
  }

  #reportExtraComma(comma: Token): void {
    this.#error(
      "COREFILE_EXTRA_COMMA",
      commaSpan(comma),
      "Expected another address but had '{' - check for extra comma",
      { expected: `no comma after the last key: ${quoteText(`${withoutComma(comma).raw} {`)}` },
    );
  }

  #reportEndAfterComma(comma: Token): void {
    this.#error(
      "COREFILE_UNEXPECTED_END",
      commaSpan(comma),
      "Unexpected EOF: another key must follow the comma",
      {
        expected: "a key, or no comma",
      },
    );
  }

  #error(code: CorefileDiagnosticCode, span: Span, message: string, details?: DiagnosticDetails): void {
    this.#sink.error(code, span, message, details);
  }
}

/** The place of the comma at the end of a key, or of the key if the comma comes from the environment. */
/** Directives that are also options of other directives. */
const ALSO_OPTIONS: ReadonlySet<string> = new Set(["errors", "header", "reload", "tls", "transfer"]);

/** Whether a block certainly belongs to a server, so that its key is a zone even if a directive has the same name. */
function holdsDirectives({ directives }: Body): boolean {
  return directives.some(({ name }) => !ALSO_OPTIONS.has(name.text));
}

function commaSpan({ raw, quoted, span }: Token): Span {
  if (quoted || !raw.endsWith(",")) return span;
  return { ...span, column: span.column + span.length - 1, length: 1 };
}

function withoutComma(token: Token): Token {
  const raw = token.raw.endsWith(",") ? token.raw.slice(0, -1) : token.raw;
  const span =
    raw === token.raw || token.quoted ? token.span : { ...token.span, length: token.span.length - 1 };
  return { ...token, text: token.text.slice(0, -1), raw, span };
}
