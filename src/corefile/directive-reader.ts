/** Reads the inside of blocks: directives, their arguments, and their own blocks. */
import { nearestWord } from "../lib/text/nearest-word.ts";
import { BraceHints, splitGluedBrace } from "./brace-hints.ts";
import {
  type DiagnosticDetails,
  type DiagnosticSink,
  formatPlace,
  quoteText,
  type Span,
} from "./diagnostic.ts";
import type { CorefileDiagnosticCode } from "./diagnostic-codes.ts";
import { type Importer, isImport, snippetName } from "./importer.ts";
import type { TokenStream } from "./token-stream.ts";
import type { Token } from "./tokens.ts";
import type { Directive } from "./tree.ts";

export interface DirectiveReaderOptions {
  readonly stream: TokenStream;
  readonly importer: Importer;
  readonly sink: DiagnosticSink;
  /** `undefined` accepts any name. */
  readonly directiveNames: ReadonlySet<string> | undefined;
  readonly nestingLimit: number;
}

/** A block whose opening brace, if it has one, was just read. */
export interface OpenBlock {
  /** `undefined` for a server block without braces. */
  readonly brace: Token | undefined;
  /** The first word of the line that opens the block. */
  readonly heading: Token;
  /** 0 for a server block. */
  readonly level: number;
}

export interface Body {
  readonly directives: readonly Directive[];
  readonly closingBrace: Token | undefined;
  /** The keys of the next server block, found because this block lacks its closing brace. */
  readonly nextKeys: readonly Token[] | undefined;
}

export class DirectiveReader {
  readonly hints = new BraceHints();
  readonly #options: DirectiveReaderOptions;

  constructor(options: DirectiveReaderOptions) {
    this.#options = options;
  }

  /** Reads up to the closing brace of the block, or to the end of the text. */
  readBody(open: OpenBlock): Body {
    const { stream, importer } = this.#options;
    const directives: Directive[] = [];
    let last = open.brace;
    for (let token = stream.peek(); token !== undefined; token = stream.peek()) {
      if (token.kind === "closing-brace") {
        stream.next();
        this.#checkClosingBrace(
          token,
          open,
          token.startsLine || last === open.brace ? undefined : directives.at(-1),
        );
        return { directives, closingBrace: token, nextKeys: undefined };
      }
      last = token;
      if (token.kind === "opening-brace") {
        stream.next();
        this.#reportStrayOpening(token);
        this.#readNested(token, token, open.level);
      } else if (isImport(token)) {
        stream.next();
        importer.expand(token);
      } else {
        stream.next();
        const read = this.#readDirective(token, open);
        if (read.nextKeys !== undefined) {
          return { directives, closingBrace: undefined, nextKeys: read.nextKeys };
        }
        directives.push(read.directive);
      }
    }
    if (open.brace !== undefined) this.#reportUnclosed(open.brace);
    return { directives, closingBrace: undefined, nextKeys: undefined };
  }

  /** Reads a directive whose first word was just read. */
  #readDirective(
    first: Token,
    open: OpenBlock,
  ): { directive: Directive; nextKeys?: undefined } | { nextKeys: readonly Token[] } {
    const { stream } = this.#options;
    const words = [first];
    let following = stream.peek();
    while (following?.kind === "word" && !following.startsLine) {
      stream.next();
      words.push(following);
      following = stream.peek();
    }
    const follows = following?.kind === "opening-brace" ? following : undefined;
    const glued = follows === undefined || follows.startsLine ? this.#unglue(words) : undefined;
    const brace = glued ?? follows;
    const [name = first, ...args] = words;
    for (const word of words) this.hints.noteWord(word);

    if (open.level === 0 && !this.#isKnown(name.text)) {
      if (brace !== undefined && glued === undefined && this.#beginsServerBlock(name, open)) {
        this.#reportMissingClosingBrace(name, open);
        return { nextKeys: words };
      }
      this.#reportUnknown(name, open, brace !== undefined);
    }
    if (brace === undefined) return { directive: { name, args, block: undefined, closingBrace: undefined } };

    if (glued === undefined) {
      stream.next();
      if (brace.startsLine) this.#reportBraceOnNextLine(brace, name);
    }
    const body = this.#readNested(brace, name, open.level);
    const after = stream.peek();
    if (body.closingBrace !== undefined && after?.kind === "word" && !after.startsLine) {
      this.#error(
        "COREFILE_TEXT_AFTER_CLOSING_BRACE",
        after.span,
        `${quoteText(after.text)} follows a closing brace`,
        { expected: "the end of the line" },
      );
    }
    return { directive: { name, args, block: body.directives, closingBrace: body.closingBrace } };
  }

  #readNested(brace: Token, heading: Token, outerLevel: number): Body {
    const level = outerLevel + 1;
    if (level <= this.#options.nestingLimit) return this.readBody({ brace, heading, level });
    this.#error(
      "COREFILE_NESTING_TOO_DEEP",
      brace.span,
      `blocks are nested deeper than ${this.#options.nestingLimit}`,
    );
    this.#skipBlock();
    return { directives: [], closingBrace: undefined, nextKeys: undefined };
  }

  /** Skips the rest of a block, including its closing brace, without recursion. */
  #skipBlock(): void {
    const { stream } = this.#options;
    let depth = 1;
    for (let token = stream.next(); token !== undefined; token = stream.next()) {
      if (token.kind === "opening-brace") depth++;
      if (token.kind === "closing-brace" && --depth === 0) return;
    }
  }

  /** Splits the brace off the last word if the space before it is missing. */
  #unglue(words: Token[]): Token | undefined {
    const last = words.at(-1);
    const split = last === undefined ? undefined : splitGluedBrace(last);
    if (last === undefined || split === undefined) return undefined;
    this.#error(
      "COREFILE_MISSING_SPACE_BEFORE_BRACE",
      split.brace.span,
      `the brace is part of the word ${quoteText(last.text)}, so it opens no block`,
      { expected: `a space before the brace: ${quoteText(`${split.word.raw} {`)}` },
    );
    words[words.length - 1] = split.word;
    return split.brace;
  }

  #isKnown(name: string): boolean {
    return this.#options.directiveNames?.has(name) ?? true;
  }

  /** Whether an unknown word with a block starts a new server block, also by its indentation. */
  #beginsServerBlock(name: Token, open: OpenBlock): boolean {
    const heading = open.heading.span;
    return (
      open.brace !== undefined &&
      name.startsLine &&
      looksLikeKey(name.text) &&
      name.span.file === heading.file &&
      name.span.importedAt === heading.importedAt &&
      name.span.column <= heading.column
    );
  }

  #checkClosingBrace(brace: Token, open: OpenBlock, sharesLineWith: Directive | undefined): void {
    this.hints.noteClosing(brace, open.heading);
    if (open.brace === undefined) {
      this.#error("COREFILE_UNEXPECTED_CLOSING_BRACE", brace.span, UNEXPECTED_CLOSING_BRACE, {
        notes: [
          `the server block of ${quoteText(open.heading.text)} at ${formatPlace(open.heading.span)} has no opening brace`,
          ...this.hints.notes(),
        ],
      });
      return;
    }
    if (sharesLineWith === undefined) return;
    const name = quoteText(sharesLineWith.name.text);
    if (open.level === 0) {
      this.#error(
        "COREFILE_CLOSING_BRACE_NOT_ON_OWN_LINE",
        brace.span,
        `${UNEXPECTED_CLOSING_BRACE}: on this line it belongs to ${name}, not to the server block`,
        { expected: "the brace that closes a server block on its own line", notes: this.hints.notes() },
      );
    } else {
      this.#options.sink.warning(
        "COREFILE_CLOSING_BRACE_NOT_ON_OWN_LINE",
        brace.span,
        `CoreDNS takes this brace for an argument of ${name} in most directives and refuses the file`,
        { expected: "each option and each closing brace on its own line" },
      );
    }
  }

  #reportUnknown(name: Token, open: OpenBlock, hasBlock: boolean): void {
    const names = this.#options.directiveNames ?? [];
    const [beforeBrace = ""] = name.raw.split("{");
    const notes: string[] = [];
    let suggestion: string | undefined;
    if (beforeBrace !== "" && name.raw !== beforeBrace && !name.quoted) {
      notes.push("a brace needs a space before and after it");
      suggestion = nearestWord(beforeBrace, names);
    } else if ([...names].includes(name.text.replace(/[:=]$/, ""))) {
      suggestion = name.text.slice(0, -1);
    } else if (looksLikeKey(name.text)) {
      notes.push(...this.#keyNotes(name, open, hasBlock));
    } else {
      suggestion = nearestWord(name.text, [...names, "import"]);
    }
    this.#error("COREFILE_UNKNOWN_DIRECTIVE", name.span, `Unknown directive ${quoteText(name.text)}`, {
      expected:
        suggestion === undefined && notes.length === 0
          ? "the name of a directive; its options go in braces after it"
          : undefined,
      suggestion,
      notes,
    });
  }

  #keyNotes(name: Token, open: OpenBlock, hasBlock: boolean): string[] {
    if (!hasBlock) return this.hints.notes();
    const block = `the server block of ${quoteText(open.heading.text)} at ${formatPlace(open.heading.span)}`;
    if (open.brace === undefined) {
      return [
        `${quoteText(name.text)} looks like the key of a server block, but ${block} has no braces, so it includes everything that follows`,
        "keys on several lines need a comma at the end of every line but the last",
      ];
    }
    return [
      `${quoteText(name.text)} looks like the key of a server block, but ${block} is still open; ` +
        "a server block cannot stand inside another",
      ...this.hints.notes(),
    ];
  }

  #reportMissingClosingBrace(name: Token, open: OpenBlock): void {
    const place = formatPlace(open.brace?.span ?? open.heading.span);
    this.#error(
      "COREFILE_MISSING_CLOSING_BRACE",
      name.span,
      `Unknown directive ${quoteText(name.text)}: the server block opened at ${place} is not closed before it`,
      { expected: "a line with '}' before this one", notes: this.hints.notes() },
    );
  }

  #reportUnclosed(brace: Token): void {
    // If the text was cut off, or a quotation mark swallowed the rest, the missing brace is not the error.
    if (this.#options.stream.aborted || this.#options.importer.hasUnterminatedQuote) return;
    this.#error(
      "COREFILE_MISSING_CLOSING_BRACE",
      brace.span,
      "Unexpected EOF: the block opened here is never closed",
      {
        expected: "a line with '}' at the end of the block",
        notes: this.hints.notes(),
      },
    );
  }

  #reportStrayOpening(brace: Token): void {
    this.#error("COREFILE_UNEXPECTED_OPENING_BRACE", brace.span, "this brace belongs to no directive", {
      expected: "the name of a directive before it, on the same line",
    });
  }

  #reportBraceOnNextLine(brace: Token, name: Token): void {
    const message = `the brace belongs to ${quoteText(name.text)} but is on its own line`;
    this.#error("COREFILE_BRACE_ON_NEXT_LINE", brace.span, message, {
      expected: `the brace on the same line: ${quoteText(`${name.raw} ... {`)}`,
    });
  }

  #error(code: CorefileDiagnosticCode, span: Span, message: string, details?: DiagnosticDetails): void {
    this.#options.sink.error(code, span, message, details);
  }
}

/** CoreDNS's own words. */
export const UNEXPECTED_CLOSING_BRACE = "Unexpected '}' because no matching opening brace";

/** Whether a word can be the key of a server block, or a snippet's heading, but not a directive. */
function looksLikeKey(text: string): boolean {
  return /[.:]/.test(text) || snippetName(text) !== undefined;
}
