/** Compiles a tree: names are looked up, types are checked, and constants are evaluated. */

import { nearestWord } from "../../lib/text/nearest-word.ts";
import type { Environment } from "../evaluation/environment.ts";
import { compileChain, compileMember, compileSlice } from "../evaluation/members.ts";
import { checkUnary, truth, unaryOperation } from "../evaluation/operators.ts";
import { accepted, constantPart, foldedPart, type Part, withPlace } from "../evaluation/part.ts";
import type { PartCompiler } from "../evaluation/part-compiler.ts";
import { Run } from "../evaluation/run.ts";
import { Scope } from "../evaluation/scope.ts";
import { FUNCTIONS } from "../functions/functions.ts";
import { PREDICATE_FUNCTIONS } from "../syntax/predicate-names.ts";
import type { Node } from "../syntax/syntax.ts";
import { type Extent, LanguageError, RunFault } from "../values/language-error.ts";
import {
  ARRAY,
  arrayOf,
  commonType,
  FUNCTION,
  INT,
  MAP,
  type Type,
  typeText,
  UNKNOWN,
} from "../values/types.ts";
import { Callable, type ExpressionValue, kindOf } from "../values/values.ts";
import { compileBinary } from "./binary.ts";
import { compileCall, compileMethod } from "./calls.ts";

type Of<K extends Node["kind"]> = Extract<Node, { readonly kind: K }>;

/** Stands in for the facts when constants are evaluated: no constant reads them. */
export class Compiler<F> implements PartCompiler<F> {
  readonly environment: Environment<F>;
  readonly scope: Scope = new Scope();
  readonly setup: Run<F>;

  constructor(environment: Environment<F>) {
    this.environment = environment;
    this.setup = new Run<F>(undefined as F, 0);
  }

  /** @throws LanguageError */
  compile(node: Node): Part<F> {
    switch (node.kind) {
      case "literal":
        return constantPart(node, node.value);
      case "name":
        return this.#name(node);
      case "let":
        return this.#let(node);
      case "sequence":
        return this.#sequence(node);
      case "condition":
        return this.#condition(node);
      case "unary":
        return this.#unary(node);
      case "binary":
        return compileBinary(this, node);
      case "member":
        return compileMember(this, node);
      case "chain":
        return compileChain(this, node);
      case "slice":
        return compileSlice(this, node);
      case "call":
        return compileCall(this, node);
      case "method":
        return compileMethod(this, node);
      case "array":
        return this.#array(node);
      case "map":
        return this.#map(node);
      case "pointer":
        return this.#pointer(node);
      case "predicate":
        return this.fail("a predicate belongs to a function", node);
    }
  }

  fail(message: string, extent: Extent, suggestion?: string): never {
    throw new LanguageError("compile", message, extent, suggestion);
  }

  /** A part whose value depends only on its children. */
  folded(node: Node, type: Type, children: readonly Part<F>[], run: Part<F>["run"]): Part<F> {
    return foldedPart(node, type, children, run, this.setup);
  }

  /** A part that reads the facts or a variable. */
  live(node: Node, type: Type, children: readonly Part<F>[], run: Part<F>["run"]): Part<F> {
    return { node, type, run: withPlace(node, run), constant: undefined, children };
  }

  /** @throws LanguageError, with the name that was probably meant */
  unknownName(name: string, extent: Extent): never {
    const known = [
      ...this.environment.functions.keys(),
      ...(this.environment.variables?.keys() ?? []),
      ...FUNCTIONS.keys(),
      ...PREDICATE_FUNCTIONS,
    ];
    return this.fail(`unknown name ${name}`, extent, nearestWord(name, known));
  }

  #name(node: Of<"name">): Part<F> {
    const { name } = node;
    const local = this.scope.find(name);
    if (local !== undefined) {
      if (local.constant !== undefined) return constantPart(node, local.constant, local.type);
      const { slot } = local;
      return {
        node,
        type: local.type,
        isLocal: true,
        run: (run) => run.slots[slot] ?? null,
        constant: undefined,
        children: [],
      };
    }
    return this.outerName(node, name);
  }

  /** A name of the environment, or of a function of the language, which is nil as a value. */
  outerName(node: Node, name: string): Part<F> {
    const variable = this.environment.variables?.get(name);
    if (variable !== undefined) {
      const run: Part<F>["run"] = ({ facts }) => variable.get(facts);
      return { node, type: variable.type, run, constant: undefined, children: [] };
    }
    const called = this.environment.functions.get(name);
    if (called !== undefined) {
      const run: Part<F>["run"] = ({ facts }) => new Callable(name, () => called.call(facts, null, null));
      return { node, type: FUNCTION, run, constant: undefined, children: [] };
    }
    if (name === "$env") return this.#environmentMap(node);
    if (FUNCTIONS.has(name) || PREDICATE_FUNCTIONS.has(name)) return constantPart(node, null, UNKNOWN);
    return this.unknownName(name, node);
  }

  #environmentMap(node: Node): Part<F> {
    const { functions, variables } = this.environment;
    return this.live(node, MAP, [], ({ facts }) => {
      const map = new Map<string, ExpressionValue>();
      for (const [name, called] of functions)
        map.set(name, new Callable(name, () => called.call(facts, null, null)));
      for (const [name, variable] of variables ?? []) map.set(name, variable.get(facts));
      return map;
    });
  }

  #let(node: Of<"let">): Part<F> {
    const { name } = node;
    const { functions, variables } = this.environment;
    if (functions.has(name) || variables?.has(name) === true) this.fail(`cannot redeclare ${name}`, node);
    if (FUNCTIONS.has(name) || PREDICATE_FUNCTIONS.has(name))
      this.fail(`cannot redeclare builtin ${name}`, node);
    if (this.scope.find(name) !== undefined) this.fail(`cannot redeclare variable ${name}`, node);
    const value = this.compile(node.value);
    const slot = this.scope.takeSlot();
    const variable = { name, type: value.type, slot, constant: value.constant };
    const body = this.scope.withVariable(variable, () => this.compile(node.body));
    if (value.constant !== undefined) return body;
    return this.live(node, body.type, [value, body], (run) => {
      run.slots[slot] = value.run(run);
      return body.run(run);
    });
  }

  /** The last of several expressions is the result; the others are checked, too. */
  #sequence(node: Of<"sequence">): Part<F> {
    const parts = node.items.map((item) => this.compile(item));
    return parts.at(-1) ?? constantPart(node, null);
  }

  #condition(node: Of<"condition">): Part<F> {
    const test = this.compile(node.test);
    if (test.type.kind !== "bool" && test.type.kind !== "unknown")
      this.fail(`non-bool expression (type ${typeText(test.type)}) used as condition`, node.test);
    const [yes, no] = [this.compile(node.yes), this.compile(node.no)];
    const type = commonType(yes.type, no.type);
    if (typeof test.constant === "boolean") return { ...(test.constant ? yes : no), type };
    return this.live(node, type, [test, yes, no], (run) =>
      truth(test.run(run)) ? yes.run(run) : no.run(run),
    );
  }

  #unary(node: Of<"unary">): Part<F> {
    const operand = this.compile(node.operand);
    const { operator } = node;
    const type = accepted(checkUnary(operator, operand.type), node);
    const operation = unaryOperation(operator);
    return this.folded(node, type, [operand], (run) => operation(operand.run(run), run));
  }

  #array(node: Of<"array">): Part<F> {
    const items = node.items.map((item) => this.compile(item));
    const [first] = items;
    const isUniform = first !== undefined && items.every(({ type }) => type.kind === first.type.kind);
    const type = isUniform && first.type.kind !== "nil" ? arrayOf(first.type) : ARRAY;
    return this.folded(node, type, items, (run) => {
      run.spend(items.length);
      return items.map((item) => item.run(run));
    });
  }

  #map(node: Of<"map">): Part<F> {
    const entries = node.entries.map(([key, value]) => [this.compile(key), this.compile(value)] as const);
    return this.folded(node, MAP, entries.flat(), (run) => {
      run.spend(entries.length);
      const map = new Map<string, ExpressionValue>();
      for (const [keyPart, valuePart] of entries) {
        const key = keyPart.run(run);
        if (typeof key !== "string") throw new RunFault(`a key of a map is a string, not ${kindOf(key)}`);
        const value = valuePart.run(run);
        if (!map.has(key)) map.set(key, value);
      }
      return map;
    });
  }

  #pointer(node: Of<"pointer">): Part<F> {
    const { frame } = this.scope;
    if (frame === undefined) return this.fail("# is outside a predicate", node);
    const part = (type: Type, slot: number): Part<F> => ({
      node,
      type,
      isLocal: true,
      run: (run) => run.slots[slot] ?? null,
      constant: undefined,
      children: [],
    });
    if (node.pointer === "element") return part(frame.element, frame.elementSlot);
    if (node.pointer === "index") return part(INT, frame.indexSlot);
    if (frame.accumulatorSlot === undefined)
      return this.fail("unknown pointer #acc: only reduce has it", node);
    return part(UNKNOWN, frame.accumulatorSlot);
  }
}
