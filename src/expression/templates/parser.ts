/** Parses tokens into the statements of a template and of the templates that it defines. */

import { fitsInteger } from "../syntax/text-scanner.ts";
import { type Extent, LanguageError } from "../values/language-error.ts";
import type { Operand, Pipe, Statement, TemplateCommand } from "./syntax.ts";
import { type TemplateToken, tokenize } from "./tokens.ts";

/** Maximum nesting of blocks and brackets. */
const MAX_NESTING = 100;

/** Statements by the name of the template, including the main one. */
export type TemplateSet = ReadonlyMap<string, readonly Statement[]>;

/**
 * @param name of the main template
 * @param functions known functions
 * @throws LanguageError
 */
export function parseTemplate(text: string, name: string, functions: ReadonlySet<string>): TemplateSet {
  return new Parser(text, functions).run(name);
}

/** How a list of statements ended. */
interface Ending extends Extent {
  readonly keyword: "end" | "else";
}

class Parser {
  readonly #tokens: readonly TemplateToken[];
  readonly #functions: ReadonlySet<string>;
  readonly #templates = new Map<string, readonly Statement[]>();
  #at = 0;
  #variables: string[] = ["$"];
  #ranges = 0;
  #nesting = 0;

  constructor(text: string, functions: ReadonlySet<string>) {
    this.#tokens = tokenize(text);
    this.#functions = functions;
  }

  run(name: string): TemplateSet {
    const body: Statement[] = [];
    while (this.#current.kind !== "end") {
      if (this.#current.kind === "open" && this.#keyword() === "define") {
        this.#define();
        continue;
      }
      const statement = this.#statement();
      if ("keyword" in statement) this.#fail(`unexpected {{${statement.keyword}}}`, statement);
      body.push(statement);
    }
    this.#add(name, body, { start: 0, end: 0 });
    return this.#templates;
  }

  get #current(): TemplateToken {
    return this.#tokens[this.#at] as TemplateToken;
  }

  #next(): TemplateToken {
    const token = this.#current;
    if (token.kind !== "end") this.#at++;
    return token;
  }

  #nextWord(): TemplateToken {
    this.#skipSpace();
    return this.#next();
  }

  #skipSpace(): void {
    if (this.#current.kind === "space") this.#at++;
  }

  #peekWord(): TemplateToken {
    this.#skipSpace();
    return this.#current;
  }

  #fail(message: string, extent: Extent): never {
    throw new LanguageError("compile", message, extent);
  }

  #unexpected(token: TemplateToken, where: string): never {
    if (token.kind === "end") return this.#fail("unexpected EOF", token);
    return this.#fail(`unexpected ${JSON.stringify(token.text)} in ${where}`, token);
  }

  /** The first word of the action that begins here. */
  #keyword(): string {
    const behind = this.#tokens[this.#at + 1];
    const word = behind?.kind === "space" ? this.#tokens[this.#at + 2] : behind;
    return word?.kind === "name" ? word.text : "";
  }

  #close(where: string): void {
    const token = this.#nextWord();
    if (token.kind !== "close") this.#unexpected(token, where);
  }

  #statement(): Statement | Ending {
    const token = this.#next();
    if (token.kind === "text") return { kind: "text", text: token.text, start: token.start, end: token.end };
    if (token.kind !== "open") return this.#unexpected(token, "input");
    const word = this.#peekWord();
    switch (word.kind === "name" ? word.text : "") {
      case "if":
      case "with":
      case "range":
        return this.#nested(() => this.#control(this.#next()));
      case "block":
        return this.#block();
      case "template":
        return this.#template();
      case "define":
        return this.#fail("unexpected <define> in command", word);
      case "end":
        this.#next();
        this.#close("end");
        return { keyword: "end", ...extentOf(word) };
      case "else":
        this.#next();
        return { keyword: "else", ...extentOf(word) };
      case "break":
      case "continue":
        return this.#leave(this.#next());
    }
    const pipe = this.#pipe("command", "close");
    this.#close("command");
    return { kind: "action", pipe, ...extentOf(pipe) };
  }

  #nested<T>(read: () => T): T {
    if (++this.#nesting > MAX_NESTING)
      this.#fail(`more than ${MAX_NESTING} blocks or brackets inside each other`, this.#current);
    const value = read();
    this.#nesting--;
    return value;
  }

  #leave(word: TemplateToken): Statement {
    const kind = word.text === "break" ? "break" : "continue";
    this.#close(`{{${kind}}}`);
    if (this.#ranges === 0) this.#fail(`{{${kind}}} outside {{range}}`, word);
    return { kind, ...extentOf(word) };
  }

  /** The statements up to `end` or `else`. */
  #list(): { readonly body: readonly Statement[]; readonly ending: Ending } {
    const body: Statement[] = [];
    for (;;) {
      if (this.#current.kind === "end") this.#fail("unexpected EOF", this.#current);
      const statement = this.#statement();
      if ("keyword" in statement) return { body, ending: statement };
      body.push(statement);
    }
  }

  #control(word: TemplateToken): Statement {
    const kind = word.text === "if" ? "if" : word.text === "with" ? "with" : "range";
    const known = this.#variables.length;
    const pipe = this.#pipe(kind, "close", kind === "range");
    this.#close(kind);
    if (kind === "range") this.#ranges++;
    const { body, ending } = this.#list();
    if (kind === "range") this.#ranges--;
    const otherwise = ending.keyword === "else" ? this.#otherwise(kind) : undefined;
    this.#variables.length = known;
    return { kind, pipe, body, otherwise, ...extentOf(word) };
  }

  /** After `else`: another condition of the same kind, or statements. */
  #otherwise(kind: "if" | "with" | "range"): readonly Statement[] {
    const word = this.#peekWord();
    if (word.kind === "name" && word.text === kind && kind !== "range")
      return [this.#nested(() => this.#control(this.#next()))];
    if (word.kind !== "close") this.#fail(`unexpected <${word.text}> in input`, word);
    this.#close("else");
    const { body, ending } = this.#list();
    if (ending.keyword === "else") this.#fail("expected end; found {{else}}", ending);
    return body;
  }

  #name(clause: string): string {
    const token = this.#nextWord();
    if (token.kind !== "constant" || typeof token.value !== "string")
      this.#unexpected(token, `${clause} clause`);
    return typeof token.value === "string" ? token.value : "";
  }

  #define(): void {
    const opened = this.#next();
    this.#nextWord();
    const name = this.#name("define");
    this.#close("define clause");
    this.#add(name, this.#definition(), opened);
  }

  /** A defined template has only the variable `$`. */
  #definition(): readonly Statement[] {
    const [variables, ranges] = [this.#variables, this.#ranges];
    this.#variables = ["$"];
    this.#ranges = 0;
    const { body, ending } = this.#nested(() => this.#list());
    if (ending.keyword === "else") this.#fail("unexpected {{else}}", ending);
    this.#variables = variables;
    this.#ranges = ranges;
    return body;
  }

  #block(): Statement {
    const word = this.#next();
    const name = this.#name("block");
    const pipe = this.#pipe("block clause", "close");
    this.#close("block clause");
    this.#add(name, this.#definition(), word);
    return { kind: "template", name, pipe, ...extentOf(word) };
  }

  #template(): Statement {
    this.#next();
    this.#skipSpace();
    const start = this.#current;
    const name = this.#name("template");
    const pipe = this.#peekWord().kind === "close" ? undefined : this.#pipe("template clause", "close");
    this.#close("template clause");
    return { kind: "template", name, pipe, ...extentOf(start) };
  }

  #add(name: string, body: readonly Statement[], extent: Extent): void {
    const known = this.#templates.get(name);
    if (known === undefined || isBlank(known)) this.#templates.set(name, body);
    else if (!isBlank(body)) this.#fail(`multiple definition of template ${JSON.stringify(name)}`, extent);
  }

  #pipe(where: string, until: "close" | ")", isRange = false): Pipe {
    const start = this.#peekWord();
    const { variables, isAssignment } = this.#declarations(isRange);
    const commands: TemplateCommand[] = [];
    for (;;) {
      const token = this.#peekWord();
      const isDone = until === "close" ? token.kind === "close" : token.text === ")" && token.kind === "mark";
      if (isDone) break;
      const command = this.#command();
      if (commands.length > 0) checkStage(command, commands.length + 1);
      commands.push(command);
    }
    const [first] = commands;
    if (first === undefined) this.#fail(`missing value for ${where}`, this.#current);
    // A variable is known after its own value.
    if (!isAssignment) this.#variables.push(...variables);
    return {
      variables,
      isAssignment,
      commands,
      start: first.start,
      end: this.#tokens[this.#at - 1]?.end ?? start.end,
    };
  }

  #declarations(isRange: boolean): { readonly variables: readonly string[]; readonly isAssignment: boolean } {
    const variables: string[] = [];
    const start = this.#at;
    for (;;) {
      const token = this.#peekWord();
      if (token.kind !== "variable") break;
      this.#next();
      const mark = this.#peekWord();
      if (mark.kind !== "mark" || ![":=", "=", ","].includes(mark.text)) break;
      if (mark.text === "," && !isRange) this.#fail("too many declarations in command", mark);
      variables.push(token.text);
      this.#next();
      if (mark.text === ",") {
        if (variables.length > 1) this.#fail("too many declarations in range", mark);
        if (this.#peekWord().kind !== "variable")
          this.#fail("range can only initialize variables", this.#current);
        continue;
      }
      return { variables, isAssignment: mark.text === "=" };
    }
    this.#at = start;
    return { variables: [], isAssignment: false };
  }

  #command(): TemplateCommand {
    const operands: Operand[] = [];
    const start = this.#peekWord();
    for (;;) {
      this.#skipSpace();
      const operand = this.#operand();
      if (operand !== undefined) operands.push(operand);
      const token = this.#next();
      if (token.kind === "space" && operand !== undefined) continue;
      if (token.kind === "mark" && token.text === "|" && operands.length > 0) break;
      if (token.kind === "close" || (token.kind === "mark" && token.text === ")")) {
        this.#at--;
        break;
      }
      this.#unexpected(token, operand === undefined ? "command" : "operand");
    }
    if (operands.length === 0) this.#fail("empty command", start);
    return { operands, start: start.start, end: this.#tokens[this.#at - 1]?.end ?? start.end };
  }

  /** A term and the fields after it. */
  #operand(): Operand | undefined {
    const term = this.#term();
    if (term === undefined) return undefined;
    const fields: string[] = [];
    const from = this.#current;
    while (this.#current.kind === "field") fields.push(this.#next().text);
    if (this.#current.kind === "dot") this.#fail("unexpected . after term", this.#current);
    if (fields.length === 0) return term;
    const extent = { start: from.start, end: this.#tokens[this.#at - 1]?.end ?? from.end };
    if (term.kind === "field") return { kind: "field", fields: [...term.fields, ...fields], ...extent };
    if (term.kind === "variable") return { ...term, fields, ...extent };
    if (term.kind === "constant" || term.kind === "nil" || term.kind === "dot")
      this.#fail(`unexpected . after term ${JSON.stringify(term.kind)}`, from);
    return { kind: "chain", operand: term, fields, ...extent };
  }

  #term(): Operand | undefined {
    const token = this.#current;
    const extent = extentOf(token);
    switch (token.kind) {
      case "name":
        this.#next();
        if (token.text === "nil") return { kind: "nil", ...extent };
        if (!this.#functions.has(token.text))
          this.#fail(`function ${JSON.stringify(token.text)} not defined`, token);
        return { kind: "function", name: token.text, ...extent };
      case "dot":
        this.#next();
        return { kind: "dot", ...extent };
      case "field":
        this.#next();
        return { kind: "field", fields: [token.text], ...extent };
      case "variable":
        this.#next();
        if (!this.#variables.includes(token.text))
          this.#fail(`undefined variable ${JSON.stringify(token.text)}`, token);
        return { kind: "variable", name: token.text, fields: [], ...extent };
      case "constant": {
        this.#next();
        const tooLarge = typeof token.value === "bigint" && !fitsInteger(token.value);
        return { kind: "constant", value: token.value, tooLarge, ...extent };
      }
      case "mark": {
        if (token.text !== "(") return undefined;
        this.#next();
        const pipe = this.#nested(() => this.#pipe("parenthesized pipeline", ")"));
        this.#nextWord();
        return { kind: "pipe", pipe, ...extentOf(pipe) };
      }
      default:
        return undefined;
    }
  }
}

function extentOf({ start, end }: Extent): Extent {
  return { start, end };
}

function isBlank(body: readonly Statement[]): boolean {
  return body.every((statement) => statement.kind === "text" && statement.text.trim() === "");
}

/** Only a callable command can receive the result of a pipe. */
function checkStage({ operands: [first] }: TemplateCommand, stage: number): void {
  if (first === undefined || !["constant", "nil", "dot"].includes(first.kind)) return;
  throw new LanguageError("compile", `non executable command in pipeline stage ${stage}`, first);
}
