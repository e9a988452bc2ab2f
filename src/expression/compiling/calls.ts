/** Calls of the environment's functions, of the language's own, and of those with a predicate. */

import type { EnvironmentFunction, KnownArgument } from "../evaluation/environment.ts";
import { accepted, type Part } from "../evaluation/part.ts";
import type { PartCompiler } from "../evaluation/part-compiler.ts";
import type { BuiltinFunction } from "../functions/function-kit.ts";
import { FUNCTIONS, LEFT_OUT } from "../functions/functions.ts";
import { compilePredicateCall } from "../functions/predicates.ts";
import { PREDICATE_FUNCTIONS } from "../syntax/predicate-names.ts";
import type { CallNode, Node } from "../syntax/syntax.ts";
import { RunFault } from "../values/language-error.ts";
import { type Type, typeText, UNKNOWN } from "../values/types.ts";
import { Callable, type ExpressionValue, Float, kindOf } from "../values/values.ts";

/** @throws LanguageError */
export function compileCall<F>(compiler: PartCompiler<F>, node: CallNode): Part<F> {
  const { name, isBuiltin } = node;
  const local = isBuiltin ? undefined : compiler.scope.find(name);
  if (local !== undefined) {
    if (local.type.kind !== "unknown" && local.type.kind !== "function")
      return compiler.fail(`${typeText(local.type)} is not callable`, node);
    return callValue(compiler, node, compiler.compile({ ...node.nameExtent, kind: "name", name }));
  }
  const own = isBuiltin ? undefined : compiler.environment.functions.get(name);
  if (own !== undefined) return environmentCall(compiler, node, own);
  const variable = isBuiltin ? undefined : compiler.environment.variables?.get(name);
  if (variable !== undefined) {
    if (variable.type.kind !== "unknown" && variable.type.kind !== "function")
      return compiler.fail(`${typeText(variable.type)} is not callable`, node);
    return callValue(compiler, node, compiler.outerName(node, name));
  }
  if (PREDICATE_FUNCTIONS.has(name)) return compilePredicateCall(compiler, node);
  const builtin = FUNCTIONS.get(name);
  if (builtin !== undefined) return builtinCall(compiler, node, builtin);
  const whyNot = LEFT_OUT.get(name);
  if (whyNot !== undefined) return compiler.fail(whyNot, node.nameExtent);
  if (isBuiltin && compiler.environment.functions.has(name))
    return environmentCall(
      compiler,
      node,
      compiler.environment.functions.get(name) as EnvironmentFunction<F>,
    );
  return compiler.unknownName(name, node.nameExtent);
}

/** `$env.name()`, the only method. */
export function compileMethod<F>(
  compiler: PartCompiler<F>,
  node: Extract<Node, { readonly kind: "method" }>,
): Part<F> {
  const { object, args } = node;
  const { property } = object;
  const isEnvironment = object.object.kind === "name" && object.object.name === "$env";
  if (isEnvironment && property.kind === "literal" && typeof property.value === "string") {
    const name = property.value;
    const own = compiler.environment.functions.get(name);
    if (own !== undefined) {
      const call: CallNode = {
        kind: "call",
        name,
        nameExtent: property,
        args,
        isBuiltin: false,
        ...extentOf(node),
      };
      return environmentCall(compiler, call, own);
    }
  }
  const callee = compiler.compile(object);
  if (callee.type.kind !== "unknown" && callee.type.kind !== "function")
    return compiler.fail(`${typeText(callee.type)} is not callable`, node);
  return callValue(compiler, node, callee);
}

function extentOf({ start, end }: Node): { readonly start: number; readonly end: number } {
  return { start, end };
}

/** Calls the value of a variable: a function of the environment without parameters. */
function callValue<F>(
  compiler: PartCompiler<F>,
  node: Node & { readonly args: readonly Node[] },
  callee: Part<F>,
): Part<F> {
  for (const arg of node.args) compiler.compile(arg);
  return compiler.live(node, UNKNOWN, [callee], (run) => {
    const value = callee.run(run);
    if (value instanceof Callable) return value.call();
    throw new RunFault(`${kindOf(value)} is not callable`);
  });
}

function countArguments<F>(compiler: PartCompiler<F>, node: CallNode, least: number, most: number): void {
  const count = node.args.length;
  if (count < least) compiler.fail(`not enough arguments to call ${node.name}`, node);
  if (count > most) compiler.fail(`too many arguments to call ${node.name}`, node);
}

function environmentCall<F>(
  compiler: PartCompiler<F>,
  node: CallNode,
  called: EnvironmentFunction<F>,
): Part<F> {
  const { parameters, result } = called;
  countArguments(compiler, node, parameters.length, parameters.length);
  const args = node.args.map((arg) => compiler.compile(arg));
  const [first, second] = args.map((arg, at) => converted(compiler, node, arg, parameters[at] ?? UNKNOWN));
  const prepared = called.prepare?.(args.map((arg) => known(compiler, arg)));
  if (prepared !== undefined) return compiler.live(node, result, args, ({ facts }) => prepared(facts));
  if (first === undefined)
    return compiler.live(node, result, args, ({ facts }) => called.call(facts, null, null));
  if (second === undefined)
    return compiler.live(node, result, args, (run) => called.call(run.facts, first(run), null));
  return compiler.live(node, result, args, (run) => called.call(run.facts, first(run), second(run)));
}

function known<F>(compiler: PartCompiler<F>, { constant, node }: Part<F>): KnownArgument {
  if (constant !== undefined) return { constant };
  if (node.kind !== "call" || !compiler.environment.functions.has(node.name) || node.args.length > 0)
    return {};
  return { call: node.name };
}

/** An argument of an environment's function: checked for its kind; nil becomes the empty value. */
function converted<F>(compiler: PartCompiler<F>, node: CallNode, arg: Part<F>, wanted: Type): Part<F>["run"] {
  const { type } = arg;
  if (wanted.kind === "unknown" || type.kind === wanted.kind) return arg.run;
  if (type.kind !== "unknown")
    compiler.fail(
      `cannot use ${typeText(type)} as argument (type ${typeText(wanted)}) to call ${node.name}`,
      arg.node,
    );
  return (run) => {
    const value = arg.run(run);
    if (value === null) return EMPTY[wanted.kind] ?? null;
    if (kindOf(value) === wanted.kind) return value;
    throw new RunFault(`${node.name} needs a ${typeText(wanted)}, not a ${kindOf(value)}`);
  };
}

const EMPTY: Readonly<Partial<Record<Type["kind"], ExpressionValue>>> = {
  string: "",
  int: 0,
  float: new Float(0),
  bool: false,
};

function builtinCall<F>(compiler: PartCompiler<F>, node: CallNode, builtin: BuiltinFunction): Part<F> {
  countArguments(compiler, node, builtin.least, builtin.most);
  const args = node.args.map((arg) => compiler.compile(arg));
  const type = accepted(builtin.check(args.map((arg) => arg.type)), node);
  const [only] = args;
  if (args.length === 1 && only !== undefined)
    return compiler.folded(node, type, args, (run) => builtin.call([only.run(run)], run));
  return compiler.folded(node, type, args, (run) =>
    builtin.call(
      args.map((arg) => arg.run(run)),
      run,
    ),
  );
}
