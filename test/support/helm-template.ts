/**
 * As much of Helm's templates (Go's text/template with functions) as the chart in deploy/helm uses, to test without Helm what it
 * would make of them. Whatever else a template says is an error.
 */
import assert from "node:assert/strict";
import { stringify } from "yaml";

/** @returns what each file becomes; what one defines, all may include */
export function renderChart(
  files: Readonly<Record<string, string>>,
  context: unknown,
): Record<string, string> {
  const defined = new Map<string, Template>();
  const templates = Object.entries(files).map(([file, text]) => {
    const template = new Parser(split(text), defined).body();
    return [file, template] as const;
  });
  const scope = () => ({ dot: context, variables: new Map([["$", context]]) });
  return Object.fromEntries(templates.map(([file, template]) => [file, template(scope())]));
}

type Scope = { readonly dot: unknown; readonly variables: Map<string, unknown> };
type Template = (scope: Scope) => string;
type Value = (scope: Scope) => unknown;

const ACTION = /\{\{((?:-\s)?(?:\s*\/\*[\s\S]*?\*\/\s*|(?:"(?:[^"\\]|\\.)*"|[^"}])*)(?:\s-)?)\}\}/;

/** Texts and the actions between them, in turn, with what `{{-` and `-}}` take away taken away. */
function split(text: string): string[] {
  return text.split(ACTION).map((part, index, parts) => {
    if (index % 2 === 1) return part.replace(/^-|-$/g, "").trim();
    const start = parts[index - 1]?.endsWith("-") ? part.trimStart() : part;
    return parts[index + 1]?.startsWith("-") ? start.trimEnd() : start;
  });
}

class Parser {
  readonly #parts: string[];
  readonly #defined: Map<string, Template>;
  #action = "";

  constructor(parts: string[], defined: Map<string, Template>) {
    this.#parts = parts;
    this.#defined = defined;
  }

  /** Up to `end`, `else`, or the end of the file. */
  body(): Template {
    const pieces: Template[] = [];
    for (;;) {
      const text = this.#parts.shift() ?? "";
      pieces.push(() => text);
      this.#action = this.#parts.shift() ?? "end";
      const [, word = "", rest = ""] = /^(\S+)\s*([\s\S]*)$/.exec(this.#action) ?? [];
      if (word === "end" || word === "else") return (scope) => pieces.map((piece) => piece(scope)).join("");
      if (word.startsWith("/*")) continue;
      if (word === "define") this.#defined.set(JSON.parse(rest), this.body());
      else if (word === "if" || word === "with" || word === "range") pieces.push(this.#block(word, rest));
      else pieces.push(this.#value(this.#action));
    }
  }

  #block(kind: "if" | "with" | "range", text: string): Template {
    const [variable, value] = this.#expression(text);
    const body = this.body();
    const otherwise = this.#otherwise();
    return (scope) => {
      const found = value(scope);
      if (!isTrue(found)) return otherwise(scope);
      const dots = kind === "if" ? [scope.dot] : kind === "range" ? itemsOf(found) : [found];
      return dots
        .map((dot) => body({ dot, variables: new Map(scope.variables).set(variable ?? "$.", dot) }))
        .join("");
    };
  }

  /** The text after `else`, up to its `end`. */
  #otherwise(): Template {
    const [, word, rest = ""] = /^else(?:\s+(\S+)\s+([\s\S]*))?$/.exec(this.#action) ?? [];
    if (this.#action === "end") return () => "";
    if (word === undefined) return this.body();
    if (word !== "if") throw new SyntaxError(`not known here: ${this.#action}`);
    return this.#block(word, rest);
  }

  #value(text: string): Template {
    const [variable, value] = this.#expression(text);
    if (variable === undefined) return (scope) => [value(scope)].join("");
    return (scope) => {
      scope.variables.set(variable, value(scope));
      return "";
    };
  }

  #expression(text: string): [variable: string | undefined, Value] {
    const [, variable, rest = text] = /^(\$\w+)\s*:=\s*([\s\S]*)$/.exec(text) ?? [];
    return [variable, this.#pipeline(rest.match(/"(?:[^"\\]|\\.)*"|[()|]|[^\s()|"]+/g) ?? [])];
  }

  /** Each command gets the result of the one before as its last argument. */
  #pipeline(words: string[]): Value {
    let before: Value | undefined;
    for (;;) {
      const name = /^[a-zA-Z]/.test(words[0] ?? "") ? words.shift() : undefined;
      const terms: Value[] = [];
      let word = words.shift();
      for (; word !== undefined && word !== "|" && word !== ")"; word = words.shift()) {
        terms.push(word === "(" ? this.#pipeline(words) : this.#term(word));
      }
      if (before !== undefined) terms.push(before);
      before = name === undefined ? this.#method(terms) : this.#call(name, terms);
      if (before === undefined) throw new SyntaxError(`an empty command in ${this.#action}`);
      if (word !== "|") return before;
    }
  }

  #term(word: string): Value {
    if (/^["\d]/.test(word)) return () => JSON.parse(word);
    const [variable = "", ...path] = word.split(".");
    return ({ dot, variables }) => {
      if (variable !== "" && !variables.has(variable)) throw new ReferenceError(`not known: ${word}`);
      const start = variable === "" ? dot : variables.get(variable);
      return path.filter(Boolean).reduce((value, key) => {
        if (value === undefined || value === null)
          throw new ReferenceError(`${word}: nothing to take ${key} of`);
        return Object(value)[key];
      }, start);
    };
  }

  /** A value alone, or one with arguments, such as `.Files.Get "name"`. */
  #method(terms: readonly Value[]): Value | undefined {
    const [value, ...rest] = terms;
    if (value === undefined || rest.length === 0) return value;
    const action = this.#action;
    return (scope) => {
      const method = value(scope);
      if (typeof method !== "function") throw new TypeError(`takes no arguments: ${action}`);
      return method(...rest.map((term) => term(scope)));
    };
  }

  #call(name: string, terms: readonly Value[]): Value {
    const call = name === "include" ? this.#include : FUNCTIONS[name];
    if (call === undefined) throw new ReferenceError(`no function ${name}`);
    return (scope) => call(...terms.map((term) => term(scope)));
  }

  readonly #include = (name: unknown, dot: unknown): string => {
    const template = this.#defined.get(String(name));
    if (template === undefined) throw new ReferenceError(`no template ${name}`);
    return template({ dot, variables: new Map([["$", dot]]) });
  };
}

const indent = (width: unknown, text: unknown) => `${text}`.replace(/^/gm, " ".repeat(Number(width)));
/** As Go goes over them: maps by their keys in order. */
function itemsOf(value: unknown): unknown[] {
  if (typeof value !== "object" || value === null) throw new TypeError("range goes over lists and maps");
  return Object.values(Object(withSortedKeys("", value)));
}

function withSortedKeys(_: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** As Go's do: the first that decides, or the last. Templates are pure, so that all may be worked out before. */
const decides = (truth: boolean) => (values: readonly unknown[]) =>
  values.find((value) => isTrue(value) === truth) ?? values.at(-1);

const FUNCTIONS: Readonly<Record<string, (...args: unknown[]) => unknown>> = {
  default: (otherwise, value) => (isTrue(value) ? value : otherwise),
  not: (value) => !isTrue(value),
  and: (...values) => decides(false)(values),
  or: (...values) => decides(true)(values),
  eq: (value, ...others) => others.includes(value),
  lower: (text) => String(text).toLowerCase(),
  add: (...values) => values.reduce<number>((sum, value) => sum + Number(value), 0),
  div: (dividend, divisor) => Math.trunc(Number(dividend) / Number(divisor)),
  max: (...values) => Math.max(...values.map(Number)),
  min: (...values) => Math.min(...values.map(Number)),
  quote: (value) => JSON.stringify(String(value)),
  trim: (text) => String(text).trim(),
  indent,
  nindent: (width, text) => `\n${indent(width, text)}`,
  regexFind: (pattern, text) => new RegExp(String(pattern)).exec(String(text))?.[0] ?? "",
  omit: (map, ...keys) =>
    Object.fromEntries(Object.entries(Object(map)).filter(([key]) => !keys.includes(key))),
  toYaml: (value) => stringify(value, { sortMapEntries: true }).trimEnd(),
  toPrettyJson: (value) => JSON.stringify(value, withSortedKeys, 2),
  fail: (reason) => assert.fail(String(reason)),
};

const isTrue = (value: unknown) =>
  typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
