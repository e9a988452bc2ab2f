/** Edits the text of a Corefile and leaves the rest as it is: layout, comments, spelling. */
import type { Span } from "../diagnostic.ts";
import { lex } from "../tokens.ts";
import type { Directive, ServerBlock } from "../tree.ts";
import { type CorefileLine, textOf } from "./line.ts";

export class TextEditor {
  readonly #text: string;
  readonly #file: string;
  readonly #lineStarts: readonly number[];
  /** By start offset, so that a text that is imported several times is changed once. */
  readonly #edits = new Map<
    string,
    { readonly start: number; readonly end: number; readonly text: string }
  >();

  constructor(text: string, file: string) {
    this.#text = text;
    this.#file = file;
    const starts = [0];
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
    this.#lineStarts = starts;
  }

  /** Whether the words of a directive are in this text, and not in an imported file. */
  has({ name }: Pick<Directive, "name">): boolean {
    return name.span.file === this.#file;
  }

  /** Replaces a directive by lines; its comments stay, above them. */
  replace(directive: Directive, lines: readonly CorefileLine[]): void {
    const start = this.#offsetOf(directive.name.span);
    const end = this.#endOf(directive);
    const indent = this.#indentAt(start);
    const comments = lex(this.#text, this.#file).comments.filter(
      (comment) => comment.start > start && comment.start < end,
    );
    const kept = [
      ...comments.map(({ text }) => text),
      ...lines.map((line) => textOf(line, indent).trimStart()),
    ];
    if (kept.length > 0) {
      this.#add(start, end, kept.join(`\n${indent}`));
      return;
    }
    // Removes the whole line, unless a comment follows.
    const rest = this.#text.slice(end, this.#lineEnd(end));
    const begin = start - indent.length;
    const isAlone = begin === this.#lineStartOf(start) && rest.trim() === "";
    if (isAlone) this.#add(begin, Math.min(this.#lineEnd(end) + 1, this.#text.length), "");
    else this.#add(start, end + (rest.length - rest.trimStart().length), "");
  }

  /** Appends lines to a server block. Lines of a snippet are elsewhere and not the block's alone. */
  append(block: ServerBlock, lines: readonly CorefileLine[]): void {
    const last = block.directives.findLast((directive) => this.#standsIn(block, directive));
    if (last !== undefined) {
      this.insertBehind(last, lines);
      return;
    }
    const { closingBrace } = block;
    if (closingBrace === undefined || closingBrace.span.file !== this.#file) return;
    const at = this.#lineStartOf(this.#offsetOf(closingBrace.span));
    this.#add(at, at, lines.map((line) => `${textOf(line, "    ")}\n`).join(""));
  }

  /** Inserts lines after a directive, with the same indentation. */
  insertBehind(directive: Directive, lines: readonly CorefileLine[]): void {
    const indent = this.#indentAt(this.#offsetOf(directive.name.span));
    const at = this.#lineEnd(this.#endOf(directive));
    this.#add(at, at, lines.map((line) => `\n${textOf(line, indent)}`).join(""));
  }

  /** Adds a line to the block of a directive, with braces if it has none. */
  addOption(directive: Directive, line: CorefileLine): void {
    const start = this.#offsetOf(directive.name.span);
    const indent = this.#indentAt(start);
    const option = textOf(line, `${indent}    `);
    const { block, closingBrace } = directive;
    if (block === undefined || closingBrace === undefined) {
      const end = this.#endOf(directive);
      this.#add(end, end, ` {\n${option}\n${indent}}`);
      return;
    }
    const at = this.#offsetOf(closingBrace.span);
    const lineStart = this.#lineStartOf(at);
    if (this.#text.slice(lineStart, at).trim() === "") this.#add(lineStart, lineStart, `${option}\n`);
    else this.#add(at, at, `\n${option}\n${indent}`);
  }

  /** The text with all changes. */
  finish(): string {
    const edits = [...this.#edits.values()].sort(
      (one, other) => other.start - one.start || other.end - one.end,
    );
    let text = this.#text;
    for (const edit of edits) text = text.slice(0, edit.start) + edit.text + text.slice(edit.end);
    return text;
  }

  #add(start: number, end: number, text: string): void {
    // Insertions at one place are joined; a second replacement of the same text is identical.
    const key = start === end ? `${start}+` : `${start}`;
    const known = this.#edits.get(key);
    const isJoined = known !== undefined && start === end && !known.text.includes(text);
    this.#edits.set(key, { start, end, text: isJoined ? known.text + text : (known?.text ?? text) });
  }

  #standsIn({ keys, closingBrace }: ServerBlock, directive: Directive): boolean {
    if (!this.has(directive)) return false;
    const at = this.#offsetOf(directive.name.span);
    const [key] = keys;
    const begin = key === undefined || key.span.file !== this.#file ? 0 : this.#offsetOf(key.span);
    return at > begin && (closingBrace === undefined || at < this.#offsetOf(closingBrace.span));
  }

  #offsetOf({ line, column }: Span): number {
    return (this.#lineStarts[line - 1] ?? 0) + column - 1;
  }

  #endOf({ name, args, closingBrace }: Directive): number {
    const { span } = closingBrace ?? args.at(-1) ?? name;
    return this.#offsetOf(span) + span.length;
  }

  #lineStartOf(offset: number): number {
    return this.#text.lastIndexOf("\n", offset - 1) + 1;
  }

  #lineEnd(offset: number): number {
    const end = this.#text.indexOf("\n", offset);
    return end < 0 ? this.#text.length : end;
  }

  #indentAt(offset: number): string {
    return /^\s*/.exec(this.#text.slice(this.#lineStartOf(offset), offset))?.[0] ?? "";
  }
}
