/** Runs the statements of a template. */

import { TEXT_UNIT } from "../evaluation/run.ts";
import { type Extent, LanguageError, RunFault } from "../values/language-error.ts";
import { compareText, type ExpressionValue, isInteger, isList, isMap, type Meter } from "../values/values.ts";
import { TEMPLATE_FUNCTIONS, type TemplateFunction } from "./functions.ts";
import type { TemplateSet } from "./parser.ts";
import type { Operand, Pipe, Statement, TemplateCommand } from "./syntax.ts";
import { isObject, isTrue, shownText, type TemplateValue, typeName } from "./template-value.ts";

/** Maximum depth of template calls. */
const MAX_DEPTH = 100;

/** Budget of one execution: statements, calls, and bytes of output divided by {@link TEXT_UNIT}. */
const BUDGET = 100_000;

/** How a list of statements ended. */
type Exit = "end" | "break" | "continue";

/** A block that begins with a condition or a list. */
type Control = Extract<Statement, { readonly otherwise: unknown }>;

interface Variable {
  readonly name: string;
  value: TemplateValue;
}

export class Executor implements Meter {
  readonly #templates: TemplateSet;
  #output = "";
  #left = BUDGET;
  #depth = 0;
  #variables: Variable[] = [];

  constructor(templates: TemplateSet) {
    this.#templates = templates;
  }

  /** @throws LanguageError of stage `run` */
  run(name: string, data: TemplateValue): string {
    this.#variables = [{ name: "$", value: data }];
    this.#list(this.#templates.get(name) ?? [], data);
    return this.#output;
  }

  spend(amount: number): void {
    this.#left -= amount;
    if (this.#left <= 0) throw new RunFault("the template writes too much, or runs for too long");
  }

  #write(text: string): void {
    this.spend(Math.floor(text.length / TEXT_UNIT) + 1);
    this.#output += text;
  }

  #list(statements: readonly Statement[], dot: TemplateValue): Exit {
    for (const statement of statements) {
      const exit = this.#located(statement, () => this.#statement(statement, dot));
      if (exit !== "end") return exit;
    }
    return "end";
  }

  /** Adds the place in the template to faults. */
  #located<T>(extent: Extent, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (error instanceof RunFault) throw new LanguageError("run", error.message, extent);
      if (error instanceof RangeError)
        throw new LanguageError("run", `out of bounds: ${error.message}`, extent);
      throw error;
    }
  }

  #statement(statement: Statement, dot: TemplateValue): Exit {
    this.spend(1);
    switch (statement.kind) {
      case "text":
        this.#write(statement.text);
        return "end";
      case "action": {
        const value = this.#pipe(statement.pipe, dot);
        if (statement.pipe.variables.length === 0) this.#write(shownText(value, this));
        return "end";
      }
      case "if":
      case "with":
        return this.#scoped(() => {
          const value = this.#pipe(statement.pipe, dot);
          if (isTrue(value)) return this.#list(statement.body, statement.kind === "with" ? value : dot);
          return this.#list(statement.otherwise ?? [], dot);
        });
      case "range":
        return this.#scoped(() => this.#range(statement, dot));
      case "template":
        this.#call(statement, dot);
        return "end";
      default:
        return statement.kind;
    }
  }

  /** Drops the variables declared inside. */
  #scoped<T>(work: () => T): T {
    const { length } = this.#variables;
    try {
      return work();
    } finally {
      this.#variables.length = length;
    }
  }

  #range(statement: Control, dot: TemplateValue): Exit {
    const { pipe, body, otherwise } = statement;
    const value = this.#commands(pipe, dot);
    const items = this.#located(pipe, () => this.#items(value, pipe.variables.length));
    if (items.length === 0) return this.#list(otherwise ?? [], dot);
    for (const [key, item] of items) {
      this.spend(1);
      const exit = this.#scoped(() => {
        const [first, second] = pipe.variables;
        if (second !== undefined) this.#set(pipe, second, item);
        if (first !== undefined) this.#set(pipe, first, second === undefined ? item : key);
        return this.#list(body, item);
      });
      if (exit === "break") break;
    }
    return "end";
  }

  #items(value: TemplateValue, variables: number): (readonly [TemplateValue, TemplateValue])[] {
    if (value === undefined || value === null) return [];
    const plain = value as ExpressionValue;
    if (plain !== null && !isObject(value)) {
      if (plain instanceof Uint8Array || isList(plain)) {
        this.spend(plain.length);
        return Array.from(plain, (item, at) => [at, item] as const);
      }
      if (isMap(plain)) {
        this.spend(plain.size);
        return [...plain].sort(([one], [other]) => compareText(one, other));
      }
      if (isInteger(plain)) {
        if (variables > 1) throw new RunFault(`can't use ${plain} to iterate over more than one variable`);
        const count = Math.max(0, Number(plain));
        this.spend(count);
        return Array.from({ length: count }, (_none, at) => [at, at] as const);
      }
    }
    throw new RunFault(`range can't iterate over ${shownText(value, this)}`);
  }

  #call(statement: Extract<Statement, { readonly kind: "template" }>, dot: TemplateValue): void {
    const { name } = statement;
    const body = this.#templates.get(name);
    if (body === undefined) throw new RunFault(`template ${JSON.stringify(name)} not defined`);
    if (this.#depth >= MAX_DEPTH) throw new RunFault(`templates call each other more than ${MAX_DEPTH} deep`);
    const data = statement.pipe === undefined ? undefined : this.#pipe(statement.pipe, dot);
    const variables = this.#variables;
    this.#variables = [{ name: "$", value: data }];
    this.#depth++;
    try {
      this.#list(body, data);
    } finally {
      this.#depth--;
      this.#variables = variables;
    }
  }

  #set(pipe: Pipe, name: string, value: TemplateValue): void {
    if (!pipe.isAssignment) {
      this.#variables.push({ name, value });
      return;
    }
    const variable = this.#variables.findLast((known) => known.name === name);
    if (variable === undefined) throw new LanguageError("run", `undefined variable: ${name}`, pipe);
    variable.value = value;
  }

  #pipe(pipe: Pipe, dot: TemplateValue): TemplateValue {
    const value = this.#commands(pipe, dot);
    for (const name of pipe.variables) this.#set(pipe, name, value);
    return value;
  }

  #commands(pipe: Pipe, dot: TemplateValue): TemplateValue {
    let value: TemplateValue;
    for (const [at, command] of pipe.commands.entries()) {
      const given = at === 0 ? [] : [value];
      value = this.#located(command, () => this.#command(command, dot, given));
    }
    return value;
  }

  /** @param given result of the previous command: empty for the first one */
  #command(
    { operands }: TemplateCommand,
    dot: TemplateValue,
    given: readonly TemplateValue[],
  ): TemplateValue {
    this.spend(1);
    const [first, ...rest] = operands;
    if (first === undefined) return undefined;
    switch (first.kind) {
      case "function":
        return this.#located(first, () => this.#function(first.name, rest, dot, given));
      case "field":
        return this.#fields(dot, first.fields, first, rest, dot, given);
      case "variable":
        return this.#fields(this.#variable(first), first.fields, first, rest, dot, given);
      case "chain":
        return this.#fields(this.#operand(first.operand, dot), first.fields, first, rest, dot, given);
    }
    if (rest.length + given.length > 0)
      throw new RunFault(`can't give argument to non-function ${first.kind}`);
    if (first.kind === "nil") throw new RunFault("nil is not a command");
    return this.#operand(first, dot);
  }

  /** Evaluates an operand as an argument, without arguments of its own. */
  #operand(operand: Operand, dot: TemplateValue): TemplateValue {
    return this.#located(operand, () => {
      switch (operand.kind) {
        case "dot":
          return dot;
        case "nil":
          return null;
        case "constant":
          if (operand.tooLarge) throw new RunFault("a whole number that needs more than 64 bits");
          return operand.value;
        case "field":
          return this.#fields(dot, operand.fields, operand, [], dot, []);
        case "variable":
          return this.#fields(this.#variable(operand), operand.fields, operand, [], dot, []);
        case "function":
          return this.#function(operand.name, [], dot, []);
        case "pipe":
          return this.#pipe(operand.pipe, dot);
        case "chain":
          return this.#fields(this.#operand(operand.operand, dot), operand.fields, operand, [], dot, []);
      }
    });
  }

  #variable({ name }: { readonly name: string }): TemplateValue {
    return this.#variables.findLast((known) => known.name === name)?.value;
  }

  /** The last field may be a method with arguments. */
  #fields(
    start: TemplateValue,
    fields: readonly string[],
    extent: Extent,
    operands: readonly Operand[],
    dot: TemplateValue,
    given: readonly TemplateValue[],
  ): TemplateValue {
    let value = start;
    return this.#located(extent, () => {
      if (fields.length === 0 && operands.length + given.length > 0)
        throw new RunFault("can't give argument to a variable");
      for (const [at, field] of fields.entries()) {
        const isLast = at === fields.length - 1;
        const args = isLast ? [...operands.map((operand) => this.#operand(operand, dot)), ...given] : [];
        value = fieldOf(value, field, args);
      }
      return value;
    });
  }

  #function(
    name: string,
    operands: readonly Operand[],
    dot: TemplateValue,
    given: readonly TemplateValue[],
  ): TemplateValue {
    const called = TEMPLATE_FUNCTIONS.get(name);
    if (called === undefined) throw new RunFault(`function ${JSON.stringify(name)} not defined`);
    const count = operands.length + given.length;
    if (count < called.least || count > called.most)
      throw new RunFault(`wrong number of args for ${name}: want ${wanted(called)} got ${count}`);
    if (name === "and" || name === "or") return this.#logic(name === "or", operands, dot, given);
    const args = [...operands.map((operand) => this.#operand(operand, dot)), ...given];
    for (const [at, kind] of (called.kinds ?? []).entries()) checkKind(args[at], kind);
    const value = called.call(args, this);
    if (typeof value === "string") this.spend(Math.floor(value.length / TEXT_UNIT) + 1);
    return value;
  }

  /** The first argument that decides, or the last one; later arguments are not evaluated. */
  #logic(
    decides: boolean,
    operands: readonly Operand[],
    dot: TemplateValue,
    given: readonly TemplateValue[],
  ): TemplateValue {
    let value: TemplateValue;
    for (const operand of operands) {
      value = this.#operand(operand, dot);
      if (isTrue(value) === decides) return value;
    }
    return given.length > 0 ? given[0] : value;
  }
}

function wanted({ least, most }: TemplateFunction): string {
  return most > 1_000 ? `at least ${least}` : String(least);
}

function checkKind(value: TemplateValue, kind: "string" | "int"): void {
  const fits =
    kind === "string" ? typeof value === "string" : typeof value === "number" || typeof value === "bigint";
  if (!fits) throw new RunFault(`expected ${kind}; found ${typeName(value)}`);
}

/** @throws RunFault for an unknown field */
function fieldOf(value: TemplateValue, field: string, args: readonly TemplateValue[]): TemplateValue {
  if (value === undefined) return undefined;
  if (value === null) throw new RunFault(`nil pointer evaluating interface {}.${field}`);
  if (isObject(value)) {
    const member = value.field(field);
    if (member === undefined) throw new RunFault(`can't evaluate field ${field} in type ${value.typeName}`);
    if (args.length !== member.parameters) {
      throw new RunFault(
        member.parameters === 0
          ? `${field} has arguments but cannot be invoked as function`
          : `wrong number of args for ${field}: want ${member.parameters} got ${args.length}`,
      );
    }
    return member.get(
      args.map((arg) => {
        if (typeof arg === "string") return arg;
        throw new RunFault(`expected string; found ${typeName(arg)}`);
      }),
    );
  }
  const plain = value as ExpressionValue;
  if (plain === null || typeof plain !== "object" || !isMap(plain))
    throw new RunFault(`can't evaluate field ${field} in type ${typeName(value)}`);
  if (args.length > 0) throw new RunFault(`${field} is not a method but has arguments`);
  // A missing key has no value; a key with nil has one.
  return plain.get(field);
}
