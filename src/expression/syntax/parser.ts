/** Parses tokens into a tree. */
import { type Extent, LanguageError } from "../values/language-error.ts";
import { BINARY, CANONICAL, NEGATABLE, type Operator, ORDERING, UNARY } from "./operator-table.ts";
import { PREDICATE_FUNCTIONS } from "./predicate-names.ts";
import type { MemberNode, Node } from "./syntax.ts";
import { type ExpressionToken, tokenize } from "./tokens.ts";

/** Maximum parts of an expression, as in CoreDNS. */
const MAX_NODES = 10_000;

/** Maximum nesting of brackets. Each level needs some stack frames, here and wherever the tree is walked. */
const MAX_NESTING = 200;

/** Maximum operators in a row, for the same reason: each makes the tree one level deeper. */
const MAX_CHAIN = 1_000;

const CONSTANTS: ReadonlyMap<string, boolean | null> = new Map([
  ["true", true],
  ["false", false],
  ["nil", null],
]);

/** @throws LanguageError */
export function parseExpression(text: string): Node {
  return new Parser(text).run();
}

class Parser {
  readonly #tokens: readonly ExpressionToken[];
  #at = 0;
  #nodes = 0;
  #nesting = 0;
  #predicates = 0;

  constructor(text: string) {
    this.#tokens = tokenize(text);
  }

  run(): Node {
    const node = this.#sequence();
    if (this.#current.kind !== "end") this.#unexpected();
    return node;
  }

  get #current(): ExpressionToken {
    return this.#tokens[this.#at] as ExpressionToken;
  }

  #next(): ExpressionToken {
    const token = this.#current;
    if (token.kind !== "end") this.#at++;
    return token;
  }

  #is(kind: "operator" | "bracket", text: string): boolean {
    return this.#current.kind === kind && this.#current.text === text;
  }

  #takes(kind: "operator" | "bracket", text: string): boolean {
    if (!this.#is(kind, text)) return false;
    this.#at++;
    return true;
  }

  #expect(kind: "operator" | "bracket", text: string): void {
    if (!this.#takes(kind, text)) this.#unexpected(`'${text}'`);
  }

  #unexpected(expected?: string): never {
    const { kind, text } = this.#current;
    const what = kind === "end" ? "the end of the expression" : `'${text}'`;
    const message = `unexpected ${what}${expected === undefined ? "" : `, expected ${expected}`}`;
    throw new LanguageError("compile", message, this.#current);
  }

  #fail(message: string, extent: Extent = this.#current): never {
    throw new LanguageError("compile", message, extent);
  }

  #node<N extends Node>(node: N): N {
    if (++this.#nodes > MAX_NODES) this.#fail(`the expression has more than ${MAX_NODES} parts`, node);
    return node;
  }

  /** From the start of a token to the current position. */
  #since({ start }: Extent): Extent {
    return { start, end: this.#tokens[this.#at - 1]?.end ?? start };
  }

  #nested<T>(read: () => T): T {
    if (++this.#nesting > MAX_NESTING)
      this.#fail(`more than ${MAX_NESTING} brackets or operators inside each other`);
    const value = read();
    this.#nesting--;
    return value;
  }

  #sequence(): Node {
    const first = this.#current;
    const items = [this.#expression(0)];
    while (this.#takes("operator", ";")) {
      if (this.#current.kind === "end" || this.#is("bracket", ")") || this.#is("bracket", "}")) break;
      items.push(this.#expression(0));
    }
    const [only] = items;
    if (items.length === 1 && only !== undefined) return only;
    return this.#node({ kind: "sequence", items, ...this.#since(first) });
  }

  #expression(least: number): Node {
    return this.#nested(() => this.#expressionInside(least));
  }

  #expressionInside(least: number): Node {
    if (least === 0) {
      if (this.#is("operator", "let")) return this.#let();
      if (this.#is("operator", "if")) return this.#if();
    }
    const first = this.#current;
    let left = this.#primary();
    let previous = "";
    for (let count = 0; this.#current.kind === "operator"; count++) {
      if (count > MAX_CHAIN) this.#fail(`more than ${MAX_CHAIN} operators in a row`);
      const negation = this.#takeNegation();
      const token = this.#current;
      const operator = token.kind === "operator" ? BINARY[token.text] : undefined;
      if (operator === undefined || operator.precedence < least) {
        if (negation) this.#at--;
        break;
      }
      if (previous === "??" && token.text !== "??")
        this.#fail(
          `put brackets around the ?? or around what follows it: '${token.text}' cannot be mixed with it`,
        );
      this.#at++;
      left = this.#operation(left, token, operator, first, negation);
      previous = token.text;
    }
    return least === 0 ? this.#conditional(left, first) : left;
  }

  /** `not` before `in` and similar operators. */
  #takeNegation(): boolean {
    const following = this.#tokens[this.#at + 1];
    if (!this.#is("operator", "not") || following === undefined || !NEGATABLE.has(following.text))
      return false;
    this.#at++;
    return true;
  }

  #operation(
    left: Node,
    token: ExpressionToken,
    operator: Operator,
    first: ExpressionToken,
    negation: boolean,
  ): Node {
    if (token.text === "|") return this.#pipe(left, first);
    const { precedence } = operator;
    let right = this.#expression(operator.isRight === true ? precedence : precedence + 1);
    const name = CANONICAL[token.text] ?? token.text;
    const make = (one: Node, word: string, other: Node): Node =>
      this.#node({ kind: "binary", operator: word, left: one, right: other, ...this.#since(first) });
    let node = make(left, name, right);
    // a < b < c means a < b and b < c.
    while (ORDERING.has(name) && this.#current.kind === "operator" && ORDERING.has(this.#current.text)) {
      const { text } = this.#next();
      const last = this.#expression(precedence + 1);
      node = make(node, "and", make(right, text, last));
      right = last;
    }
    if (!negation) return node;
    return this.#node({ kind: "unary", operator: "not", operand: node, ...this.#since(first) });
  }

  #conditional(test: Node, first: ExpressionToken): Node {
    let node = test;
    for (;;) {
      if (this.#takes("operator", "?:")) {
        const no = this.#expression(0);
        node = this.#node({ kind: "condition", test: node, yes: node, no, ...this.#since(first) });
      } else if (this.#takes("operator", "?")) {
        const yes = this.#expression(0);
        this.#expect("operator", ":");
        const no = this.#expression(0);
        node = this.#node({ kind: "condition", test: node, yes, no, ...this.#since(first) });
      } else {
        return node;
      }
    }
  }

  #let(): Node {
    const first = this.#next();
    const name = this.#next();
    if (name.kind !== "name") {
      this.#at--;
      this.#unexpected("the name of a variable");
    }
    this.#expect("operator", "=");
    const value = this.#expression(0);
    this.#expect("operator", ";");
    const body = this.#sequence();
    return this.#node({ kind: "let", name: name.text, value, body, ...this.#since(first) });
  }

  #if(): Node {
    const first = this.#next();
    const test = this.#expression(0);
    const yes = this.#block();
    this.#expect("operator", "else");
    const no = this.#is("operator", "if") ? this.#nested(() => this.#if()) : this.#block();
    return this.#node({ kind: "condition", test, yes, no, ...this.#since(first) });
  }

  #block(): Node {
    this.#expect("bracket", "{");
    const node = this.#sequence();
    this.#expect("bracket", "}");
    return node;
  }

  #primary(): Node {
    const token = this.#current;
    const unary = token.kind === "operator" ? UNARY[token.text] : undefined;
    if (unary !== undefined) {
      this.#at++;
      const operand = this.#expression(unary);
      const operator = CANONICAL[token.text] ?? token.text;
      return this.#postfix(this.#node({ kind: "unary", operator, operand, ...this.#since(token) }), token);
    }
    if (this.#takes("bracket", "(")) {
      const node = this.#sequence();
      this.#expect("bracket", ")");
      return this.#postfix(node, token);
    }
    if (this.#predicates > 0 && (this.#is("operator", "#") || this.#is("operator", "."))) {
      return this.#postfix(this.#pointer(), token);
    }
    if (this.#takes("operator", "::")) {
      const name = this.#next();
      if (name.kind !== "name" || !this.#is("bracket", "(")) {
        this.#at--;
        this.#unexpected();
      }
      return this.#postfix(this.#call(name, true), token);
    }
    return this.#secondary(token);
  }

  #secondary(token: ExpressionToken): Node {
    this.#at++;
    switch (token.kind) {
      case "name": {
        const constant = CONSTANTS.get(token.text);
        if (constant !== undefined)
          return this.#node({ kind: "literal", value: constant, ...this.#since(token) });
        if (this.#is("bracket", "(")) return this.#postfix(this.#call(token, false), token);
        return this.#postfix(this.#node({ kind: "name", name: token.text, ...this.#since(token) }), token);
      }
      case "number":
        return this.#node({ kind: "literal", value: token.value, ...this.#since(token) });
      case "string":
      case "bytes":
        return this.#postfix(
          this.#node({ kind: "literal", value: token.value, ...this.#since(token) }),
          token,
        );
      case "bracket":
        if (token.text === "[") return this.#postfix(this.#array(token), token);
        if (token.text === "{") return this.#postfix(this.#map(token), token);
    }
    this.#at = this.#tokens.indexOf(token);
    this.#unexpected();
  }

  #pointer(): Node {
    const token = this.#current;
    if (token.text === ".")
      return this.#node({ kind: "pointer", pointer: "element", start: token.start, end: token.start });
    this.#at++;
    const name = this.#current.kind === "name" && this.#current.start === token.end ? this.#next().text : "";
    const pointer = name === "" ? "element" : name === "index" ? "index" : "accumulator";
    if (pointer === "accumulator" && name !== "acc")
      this.#fail(`unknown pointer #${name}`, this.#since(token));
    return this.#node({ kind: "pointer", pointer, ...this.#since(token) });
  }

  #call(name: ExpressionToken, isBuiltin: boolean): Node {
    const args: Node[] = [];
    this.#expect("bracket", "(");
    this.#arguments(args, name.text);
    return this.#node({
      kind: "call",
      name: name.text,
      nameExtent: name,
      args,
      isBuiltin,
      ...this.#since(name),
    });
  }

  /** Reads up to the closing bracket; the second argument of `filter` and similar functions is a predicate. */
  #arguments(args: Node[], name: string): void {
    const predicateAt = PREDICATE_FUNCTIONS.has(name) ? 1 : -1;
    while (!this.#is("bracket", ")")) {
      args.push(args.length === predicateAt ? this.#predicate() : this.#expression(0));
      if (!this.#takes("operator", ",")) break;
    }
    this.#expect("bracket", ")");
  }

  #predicate(): Node {
    const first = this.#current;
    this.#predicates++;
    let body: Node;
    if (this.#takes("bracket", "{")) {
      body = this.#sequence();
      this.#expect("bracket", "}");
    } else {
      body = this.#expression(0);
      if (this.#is("operator", ";")) this.#fail("wrap predicate with brackets { and }");
    }
    this.#predicates--;
    return this.#node({ kind: "predicate", body, ...this.#since(first) });
  }

  #pipe(left: Node, first: ExpressionToken): Node {
    const name = this.#next();
    if (name.kind !== "name") {
      this.#at--;
      this.#unexpected("the name of a function");
    }
    this.#expect("bracket", "(");
    const args = [left];
    this.#arguments(args, name.text);
    return this.#node({
      kind: "call",
      name: name.text,
      nameExtent: name,
      args,
      isBuiltin: false,
      ...this.#since(first),
    });
  }

  #array(first: ExpressionToken): Node {
    const items: Node[] = [];
    while (!this.#is("bracket", "]")) {
      items.push(this.#expression(0));
      if (!this.#takes("operator", ",")) break;
    }
    this.#expect("bracket", "]");
    return this.#node({ kind: "array", items, ...this.#since(first) });
  }

  #map(first: ExpressionToken): Node {
    const entries: [Node, Node][] = [];
    while (!this.#is("bracket", "}")) {
      const key = this.#mapKey();
      this.#expect("operator", ":");
      entries.push([key, this.#expression(0)]);
      if (!this.#takes("operator", ",")) break;
    }
    this.#expect("bracket", "}");
    return this.#node({ kind: "map", entries, ...this.#since(first) });
  }

  #mapKey(): Node {
    const token = this.#next();
    if (token.kind === "name" || token.kind === "number" || token.kind === "string")
      return this.#node({ kind: "literal", value: token.text, ...this.#since(token) });
    if (token.kind === "bracket" && token.text === "(") {
      const node = this.#expression(0);
      this.#expect("bracket", ")");
      return node;
    }
    this.#at = this.#tokens.indexOf(token);
    this.#unexpected("a key: a name, a number, a string, or an expression in brackets");
  }

  #postfix(start: Node, first: ExpressionToken): Node {
    let node = start;
    let isChain = false;
    for (let count = 0; ; count++) {
      if (count > MAX_CHAIN) this.#fail(`more than ${MAX_CHAIN} members in a row`);
      if (this.#takes("operator", ".")) {
        node = this.#member(node, first, false);
      } else if (this.#takes("operator", "?.")) {
        isChain = true;
        node = this.#takes("bracket", "[") ? this.#index(node, first, true) : this.#member(node, first, true);
      } else if (this.#takes("bracket", "[")) {
        node = this.#index(node, first, false);
      } else {
        return isChain ? this.#node({ kind: "chain", body: node, ...this.#since(first) }) : node;
      }
    }
  }

  #member(object: Node, first: ExpressionToken, isOptional: boolean): Node {
    const token = this.#next();
    const isName = token.kind === "name" || (token.kind === "operator" && /^\w+$/.test(token.text));
    if (!isName) {
      this.#at--;
      this.#unexpected("a name");
    }
    const property: Node = { kind: "literal", value: token.text, ...this.#since(token) };
    const member: MemberNode = { kind: "member", object, property, isOptional, ...this.#since(first) };
    this.#node(member);
    if (!this.#takes("bracket", "(")) return member;
    const args: Node[] = [];
    this.#arguments(args, "");
    return this.#node({ kind: "method", object: member, args, ...this.#since(first) });
  }

  #index(object: Node, first: ExpressionToken, isOptional: boolean): Node {
    const from = this.#is("operator", ":") ? undefined : this.#expression(0);
    if (!isOptional && this.#takes("operator", ":")) {
      const to = this.#is("bracket", "]") ? undefined : this.#expression(0);
      this.#expect("bracket", "]");
      return this.#node({ kind: "slice", object, from, to, ...this.#since(first) });
    }
    this.#expect("bracket", "]");
    if (from === undefined) this.#unexpected();
    return this.#node({ kind: "member", object, property: from, isOptional, ...this.#since(first) });
  }
}
