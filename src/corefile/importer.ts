/** Snippets, and `import` of snippets, files and file patterns (docs/spec/coredns-behaviour.md#grammar). */
import { dirname, isAbsolute, join } from "node:path";
import { nearestWord } from "../lib/text/nearest-word.ts";
import {
  type DiagnosticDetails,
  type DiagnosticSink,
  formatPlace,
  quoteText,
  type Span,
} from "./diagnostic.ts";
import type { CorefileDiagnosticCode } from "./diagnostic-codes.ts";
import { type CorefileHost, describeNoText, type FileContent } from "./host.ts";
import { countPlaceholders, type ImportFrame, type TokenStream } from "./token-stream.ts";
import { type Lexed, lex, type Token } from "./tokens.ts";

export interface ImporterOptions {
  readonly host: CorefileHost;
  readonly sink: DiagnosticSink;
  readonly stream: TokenStream;
  readonly tokenLimit: number;
  readonly snippetExpansionLimit: number;
  readonly fileExpansionLimit: number;
}

export class Importer {
  readonly #options: ImporterOptions;
  readonly #snippets = new Map<string, Snippet>();
  readonly #files = new Map<string, Lexed>();
  /** Names of the files that were read. */
  readonly #names: string[] = [];
  /** Failures by path, for paths that could not be read. */
  readonly #failures = new Map<string, UnreadableFile>();
  /** Headings of the snippets in all files read, already declared or not. */
  readonly #headings = new Map<string, Token>();
  #snippetExpansions = 0;
  #fileExpansions = 0;
  #hasUnterminatedQuote = false;

  constructor(options: ImporterOptions) {
    this.#options = options;
  }

  /** Every file that was read, each once, by its name in places. */
  get files(): readonly string[] {
    return [...this.#names];
  }

  /** A missing quotation mark swallows the braces after it, so errors about those would only mislead. */
  get hasUnterminatedQuote(): boolean {
    return this.#hasUnterminatedQuote;
  }

  /** Starts to read the main file. */
  start(path: string, text: string): void {
    const tokens = this.#lexFile(path, text).tokens;
    const identity = `file ${path}`;
    this.#options.stream.push([{ tokens, parent: undefined, identity, importedAt: undefined, args: [] }]);
  }

  /** Keeps a snippet for later imports. `heading` is its name in parentheses. */
  define(heading: Token, body: readonly Token[]): void {
    const name = snippetName(heading.text);
    if (name === undefined) return;
    const before = this.#snippets.get(name);
    if (before !== undefined) {
      this.#error(
        "COREFILE_SNIPPET_REDEFINED",
        heading.span,
        `redeclaration of previously declared snippet ${name}`,
        {
          expected: "a different name for each snippet",
          notes: [`the snippet is first declared at ${formatPlace(before.heading.span)}`],
        },
      );
      return;
    }
    const selfImport = body.find((token, index) => {
      const before = body[index - 1];
      const beginsLine = token.startsLine || before === undefined || before.kind !== "word";
      return beginsLine && isImport(token) && body[index + 1]?.text === name;
    });
    if (selfImport !== undefined)
      this.#reportEndless("snippet", selfImport.span, `snippet ${quoteText(name)} imports itself`);
    this.#snippets.set(name, {
      heading,
      tokens: selfImport === undefined ? body : [],
      placeholders: countPlaceholders(body),
    });
  }

  /** Replaces an `import` line, whose first word was just read, by its text. */
  expand(keyword: Token): void {
    const { stream } = this.#options;
    const parent = stream.frame;
    if (parent === undefined) return;
    const [name, ...args] = stream.takeArguments();
    if (name === undefined) {
      this.#error(
        "COREFILE_IMPORT_SYNTAX",
        keyword.span,
        "Wrong argument count or unexpected line ending after 'import'",
        { expected: "the name of a snippet, a file or a pattern of files" },
      );
      return;
    }
    if (name.text === "") {
      const notes = name.raw === "" ? [] : [`${quoteText(name.raw)} has no value`];
      this.#error("COREFILE_IMPORT_SYNTAX", name.span, "Import requires a non-empty filepath", { notes });
      return;
    }
    const site: ImportSite = { name, args, parent, importedAt: keyword.span };
    const snippet = this.#snippets.get(name.text);
    if (snippet === undefined) this.#expandFiles(site);
    else this.#expandSnippet(site, snippet);
  }

  #expandSnippet(site: ImportSite, snippet: Snippet): void {
    this.#snippetExpansions++;
    if (this.#snippetExpansions > this.#options.snippetExpansionLimit) {
      if (this.#snippetExpansions === this.#options.snippetExpansionLimit + 1) {
        this.#reportEndless("snippet", site.importedAt, "snippets are imported too often");
      }
      return;
    }
    this.#push(site, "snippet", [[site.name.text, snippet.tokens]], snippet.placeholders);
  }

  #expandFiles(site: ImportSite): void {
    const pattern = site.name.text;
    if (
      count(pattern, "*") > 1 ||
      count(pattern, "?") > 1 ||
      (pattern.includes("[") && pattern.includes("]"))
    ) {
      const message = `Glob pattern may only contain one wildcard (*), but has others: ${pattern}`;
      this.#error("COREFILE_IMPORT_GLOB", site.name.span, message, {
        expected: "at most one `*` and one `?`, and no `[...]`",
      });
      return;
    }
    const path = isAbsolute(pattern) ? pattern : join(dirname(site.name.span.file), pattern);
    const isPattern = /[*?]/.test(pattern);
    const matches = isPattern ? this.#glob(path) : [path];
    if (matches.length === 0) {
      const message = `No files matching import glob pattern: ${pattern}`;
      this.#options.sink.warning("COREFILE_IMPORT_NO_MATCH", site.name.span, message, {
        notes: [`looked for ${quoteText(path)}`],
      });
      return;
    }
    const texts: [path: string, tokens: readonly Token[]][] = [];
    let placeholders = 0;
    for (const match of matches) {
      this.#fileExpansions++;
      if (this.#fileExpansions > this.#options.fileExpansionLimit) {
        if (this.#fileExpansions === this.#options.fileExpansionLimit + 1) {
          this.#reportEndless("file", site.importedAt, "files are imported too often");
        }
        break;
      }
      const lexed = this.#read(match, site.name);
      if (lexed === undefined) continue;
      texts.push([match, lexed.tokens]);
      placeholders = Math.max(placeholders, countPlaceholders(lexed.tokens));
    }
    if (texts.length > 0) this.#push(site, "file", texts, placeholders);
  }

  #push(
    site: ImportSite,
    kind: "snippet" | "file",
    texts: readonly (readonly [name: string, tokens: readonly Token[]])[],
    placeholders: number,
  ): void {
    const unused = site.args[placeholders];
    if (unused !== undefined) {
      const message = `Import takes only one argument (glob pattern or file): nothing uses ${quoteText(unused.text)}`;
      this.#error("COREFILE_IMPORT_SYNTAX", unused.span, message, {
        notes: [
          `more arguments have a meaning only where the imported text contains {args[${placeholders}]}`,
        ],
      });
    }
    const frames: ImportFrame[] = [];
    for (const [name, tokens] of texts) {
      const identity = `${kind} ${name}`;
      if (isAmongParents(identity, site.parent)) {
        this.#reportEndless(kind, site.importedAt, `${kind} ${quoteText(name)} imports itself`);
        continue;
      }
      const args = site.args.map((token) => token.text);
      frames.push({ tokens, parent: site.parent, identity, importedAt: site.importedAt, args });
    }
    this.#options.stream.push(frames);
  }

  #read(path: string, name: Token): Lexed | undefined {
    const known = this.#files.get(path);
    if (known !== undefined) return known;
    const content = this.#failures.get(path) ?? this.#options.host.readFile(path);
    if (content.kind === "text") return this.#lexFile(path, content.text, content.name);
    this.#failures.set(path, content);
    if (content.kind === "missing") {
      this.#error("COREFILE_IMPORT_NOT_FOUND", name.span, `File to import not found: ${name.text}`, {
        suggestion: nearestWord(name.text, this.#snippets.keys()),
        notes: [`looked for ${quoteText(path)}`, ...this.#laterSnippet(name.text)],
      });
    } else {
      const notes =
        content.kind === "directory" ? [`${quoteText(join(path, "*"))} imports all files in it`] : [];
      this.#error(
        "COREFILE_IMPORT_UNREADABLE",
        name.span,
        `Could not import ${path}: ${describeNoText(content)}`,
        { notes },
      );
    }
    return undefined;
  }

  #lexFile(path: string, text: string, name = path): Lexed {
    // One token above the limit, so that the stream reports that there are too many.
    const lexed = lex(text, name, this.#options.tokenLimit + 1);
    this.#names.push(name);
    this.#files.set(path, lexed);
    for (const token of lexed.tokens) {
      const name = token.startsLine ? snippetName(token.text) : undefined;
      if (name !== undefined && !this.#headings.has(name)) this.#headings.set(name, token);
    }
    if (lexed.unterminated !== undefined) {
      this.#hasUnterminatedQuote = true;
      const message = "the quotation mark is never closed, so all text after it is one word";
      this.#error("COREFILE_UNTERMINATED_QUOTE", lexed.unterminated.span, message, {
        expected: `'"' at the end of the word; within quotes, \\" is a quotation mark`,
      });
    }
    return lexed;
  }

  /** The error for a snippet that is imported before its declaration should not send the user to look for a file. */
  #laterSnippet(name: string): string[] {
    const heading = this.#headings.get(name);
    if (heading === undefined) return [];
    return [
      `snippet ${quoteText(name)} is declared at ${formatPlace(heading.span)}: it must come before its imports`,
    ];
  }

  /** Paths that match a pattern, sorted. Wildcards match within one part of the path. */
  #glob(pattern: string): string[] {
    let paths = [pattern.startsWith("/") ? "/" : "."];
    let certain = true;
    for (const part of pattern.split("/")) {
      if (part === "" || part === ".") continue;
      const matcher = /[*?]/.test(part) ? partMatcher(part) : undefined;
      const found: string[] = [];
      for (const directory of paths) {
        if (matcher !== undefined) {
          const names = this.#options.host.list(directory)?.filter((name) => matcher.test(name)) ?? [];
          for (const name of names.sort()) found.push(join(directory, name));
        } else if (certain || this.#options.host.list(directory)?.includes(part)) {
          found.push(join(directory, part));
        }
      }
      // Below a wildcard, a part may not exist and must be checked. Above it, the directory listing shows that.
      if (matcher !== undefined) certain = false;
      paths = found;
    }
    return paths;
  }

  #reportEndless(kind: "snippet" | "file", span: Span, what: string): void {
    const limit = kind === "snippet" ? this.#options.snippetExpansionLimit : this.#options.fileExpansionLimit;
    this.#error("COREFILE_IMPORT_LIMIT", span, `maximum ${kind} import depth (${limit}) exceeded: ${what}`);
  }

  #error(code: CorefileDiagnosticCode, span: Span, message: string, details?: DiagnosticDetails): void {
    this.#options.sink.error(code, span, message, details);
  }
}

/** `common` for `(common)`; `undefined` for any other text. */
export function snippetName(text: string): string | undefined {
  return text.length >= 2 && text.startsWith("(") && text.endsWith(")") ? text.slice(1, -1) : undefined;
}

/** Whether a token that starts a line is the word `import`. */
export function isImport(token: Token): boolean {
  return token.kind === "word" && token.raw === "import";
}

interface Snippet {
  readonly heading: Token;
  readonly tokens: readonly Token[];
  readonly placeholders: number;
}

type UnreadableFile = Exclude<FileContent, { kind: "text" }>;

interface ImportSite {
  readonly name: Token;
  readonly args: readonly Token[];
  readonly parent: ImportFrame;
  readonly importedAt: Span;
}

function isAmongParents(identity: string, from: ImportFrame): boolean {
  for (let frame: ImportFrame | undefined = from; frame !== undefined; frame = frame.parent) {
    if (frame.identity === identity) return true;
  }
  return false;
}

function count(text: string, character: string): number {
  return text.split(character).length - 1;
}

function partMatcher(part: string): RegExp {
  const source = part
    .replace(/[\\^$.+()|{}[\]]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${source}$`, "su");
}
