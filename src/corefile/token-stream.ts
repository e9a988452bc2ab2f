/** The tokens of a Corefile in reading order, with imports replaced by their texts. */

import { type DiagnosticSink, formatPlace, quoteText, type Span } from "./diagnostic.ts";
import { substituteEnvironment } from "./environment.ts";
import type { Token } from "./tokens.ts";

/** A text being read: the main file, or an imported text. */
export interface ImportFrame {
  readonly tokens: readonly Token[];
  /** The text that contains the import; `undefined` for the main file. */
  readonly parent: ImportFrame | undefined;
  /** `snippet common`, `file /etc/coredns/common.conf`: a text must not be among its own parents. */
  readonly identity: string;
  readonly importedAt: Span | undefined;
  /** The arguments of the import, for `{args[0]}`, `{args[1]}`, ... */
  readonly args: readonly string[];
}

export interface TokenStreamOptions {
  readonly sink: DiagnosticSink;
  readonly environmentVariable: (name: string) => string | undefined;
  /** Limit of all tokens. */
  readonly tokenLimit: number;
  /** Errors after which reading stops. */
  readonly errorLimit: number;
}

export class TokenStream {
  readonly #options: TokenStreamOptions;
  /** Innermost last. The files of one pattern are siblings: `parent` is the importing text. */
  readonly #cursors: Cursor[] = [];
  readonly #reportedUnset = new Set<string>();
  #current: Token | undefined;
  /** Whether an imported text began or ended since the last token. */
  #crossedBorder = false;
  #read = 0;
  #aborted = false;
  #tooFaultyAt: Span | undefined;

  constructor(options: TokenStreamOptions) {
    this.#options = options;
  }

  /** Whether the rest of the text was dropped because it was too large or had too many errors. */
  get aborted(): boolean {
    return this.#aborted;
  }

  /** Where the text was dropped because of too many errors. */
  get tooFaultyAt(): Span | undefined {
    return this.#tooFaultyAt;
  }

  /** The text of the token that {@link next} last returned, valid until {@link peek} passes its end. */
  get frame(): ImportFrame | undefined {
    return this.#cursors.at(-1)?.frame;
  }

  /** Inserts texts before the unread rest; the first is read first. */
  push(frames: readonly ImportFrame[]): void {
    this.#current = undefined;
    this.#crossedBorder = true;
    for (const frame of frames.toReversed()) this.#cursors.push({ frame, position: 0 });
  }

  /** The token that {@link next} will return; `undefined` at the end. */
  peek(): Token | undefined {
    if (this.#current !== undefined) return this.#current;
    for (let cursor = this.#cursors.at(-1); cursor !== undefined; cursor = this.#cursors.at(-1)) {
      const token = cursor.frame.tokens[cursor.position];
      if (token !== undefined) {
        if (this.#options.sink.errorCount >= this.#options.errorLimit) {
          this.#tooFaultyAt = token.span;
          this.#abort();
          return undefined;
        }
        this.#current = this.#prepare(token, cursor.frame);
        return this.#current;
      }
      this.#cursors.pop();
      this.#crossedBorder = true;
    }
    return undefined;
  }

  next(): Token | undefined {
    const token = this.peek();
    const cursor = this.#cursors.at(-1);
    if (token === undefined || cursor === undefined) return undefined;
    this.#advance(cursor, token.span);
    return token;
  }

  /** The words up to the end of the line or to a brace, all in the text of the last token. */
  takeArguments(): Token[] {
    const args: Token[] = [];
    const cursor = this.#cursors.at(-1);
    if (cursor === undefined) return args;
    for (;;) {
      const following = cursor.frame.tokens[cursor.position];
      if (following === undefined || following.startsLine || following.kind !== "word") return args;
      const token = this.next();
      if (token === undefined) return args;
      args.push(token);
    }
  }

  /**
   * The tokens up to the brace that closes the block just opened, as written. Consumes that brace. `undefined` if the current text
   * ends first.
   */
  takeBlock(): Token[] | undefined {
    const cursor = this.#cursors.at(-1);
    if (cursor === undefined) return undefined;
    this.#current = undefined;
    const taken: Token[] = [];
    let depth = 1;
    for (;;) {
      const token = cursor.frame.tokens[cursor.position];
      if (token === undefined) return undefined;
      this.#advance(cursor, token.span);
      if (this.#aborted) return undefined;
      if (token.kind === "opening-brace") depth++;
      if (token.kind === "closing-brace" && --depth === 0) return taken;
      taken.push(token);
    }
  }

  #advance(cursor: Cursor, span: Span): void {
    cursor.position++;
    this.#current = undefined;
    this.#crossedBorder = false;
    this.#read++;
    const { sink, tokenLimit } = this.#options;
    if (this.#read <= tokenLimit) return;
    sink.error("COREFILE_TOO_LARGE", span, `the Corefile has more than ${tokenLimit} words`, {
      notes: ["imported texts count each time they are imported"],
    });
    this.#abort();
  }

  #abort(): void {
    this.#aborted = true;
    this.#cursors.length = 0;
  }

  #prepare(token: Token, frame: ImportFrame): Token {
    const span =
      frame.importedAt === undefined ? token.span : { ...token.span, importedAt: frame.importedAt };
    const startsLine = token.startsLine || this.#crossedBorder;
    const isImported = frame.parent !== undefined;
    const raw = isImported && token.kind === "word" ? this.#fillArguments(token.raw, frame, span) : token.raw;
    const text = token.kind === "word" ? this.#fillEnvironment(raw, span) : raw;
    if (!isImported && text === token.text && startsLine === token.startsLine) return token;
    return { kind: token.kind, text, raw, quoted: token.quoted, startsLine, span };
  }

  #fillArguments(text: string, frame: ImportFrame, span: Span): string {
    if (!text.includes("{args")) return text;
    return text.replace(PLACEHOLDER, (placeholder, afterDot?: string, inBrackets?: string) => {
      const index = placeholderIndex(afterDot ?? inBrackets ?? "");
      const value = index === undefined ? undefined : frame.args[index];
      if (value !== undefined) return value;
      const where = frame.importedAt === undefined ? "" : ` at ${formatPlace(frame.importedAt)}`;
      const message =
        index === undefined
          ? `${quoteText(placeholder)} is not an import argument`
          : `${quoteText(placeholder)} has no value: the import${where} gives ${frame.args.length} argument(s)`;
      this.#options.sink.error("COREFILE_IMPORT_ARGUMENT", span, message, {
        expected: "{args[0]} for the first argument after the name, {args[1]} for the second, and so on",
      });
      return "";
    });
  }

  #fillEnvironment(text: string, span: Span): string {
    const substitution = substituteEnvironment(text, this.#options.environmentVariable);
    if (substitution === undefined) return text;
    if (substitution.endless) {
      const message = `the environment variables in ${quoteText(text)} never end`;
      this.#options.sink.error("COREFILE_ENVIRONMENT_ENDLESS", span, message, {
        notes: [
          "their values refer to each other, or are too long; references in values are filled in as well",
        ],
      });
    }
    for (const name of substitution.unset) {
      // A snippet with several imports would otherwise report the same word each time.
      const place = `${name} ${formatPlace(span)}`;
      if (this.#reportedUnset.has(place)) continue;
      this.#reportedUnset.add(place);
      const notes = name.includes(":")
        ? ["defaults are not supported: the whole text is the variable's name"]
        : [];
      const message = `environment variable ${quoteText(name)} is not set and counts as empty`;
      this.#options.sink.warning("COREFILE_ENVIRONMENT_UNSET", span, message, { notes });
    }
    return substitution.text;
  }
}

/** The number of arguments that the placeholders of a text need: one more than the highest index. */
export function countPlaceholders(tokens: readonly Token[]): number {
  let count = 0;
  for (const token of tokens) {
    if (!token.raw.includes("{args")) continue;
    for (const [, afterDot, inBrackets] of token.raw.matchAll(PLACEHOLDER)) {
      const index = placeholderIndex(afterDot ?? inBrackets ?? "");
      if (index !== undefined && index >= count) count = index + 1;
    }
  }
  return count;
}

interface Cursor {
  readonly frame: ImportFrame;
  position: number;
}

const PLACEHOLDER = /\{args(?:\.([^{}]*)|\[([^{}\]]*)\])\}/g;

function placeholderIndex(digits: string): number | undefined {
  return /^\d{1,3}$/.test(digits) ? Number(digits) : undefined;
}
