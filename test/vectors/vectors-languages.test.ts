/**
 * The expression language and the template language against results recorded from the implementations that CoreDNS uses. To add cases,
 * append lines to `fixtures/vectors/languages/*.jsonl` (`support/vectors/language-vectors.ts` says what a line is).
 *
 * `differences.json` beside them names what differs on purpose: the reason, and for it the ids. Reasons are sentences of
 * `docs/compatibility.md`. What is listed and does not differ is a fault.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { EnvironmentVariable } from "../../src/expression/evaluation/environment.ts";
import { compileExpression } from "../../src/expression/expression.ts";
import { compileTemplate, placeOf } from "../../src/expression/templates/template.ts";
import { LanguageError } from "../../src/expression/values/language-error.ts";
import { ARRAY } from "../../src/expression/values/types.ts";
import { compilePattern } from "../../src/lib/text/pattern.ts";
import { QUERY_ENVIRONMENT } from "../../src/plugin/facts/query-environment.ts";
import { type TemplateFacts, templateData, templateEnvironment } from "../../src/plugins/template/facts.ts";
import {
  type ExpressionVector,
  encodeValue,
  readEnvironments,
  type TemplateVector,
  withoutTypes,
} from "../support/vectors/language-vectors.ts";
import { unsaidReasons } from "../support/vectors/listed-differences.ts";
import { readDifferences, readLines } from "../support/vectors/vector-set.ts";

const environments = readEnvironments();
const differences = readDifferences("languages/differences.json");

type Variables = readonly (readonly [string, string])[];

/** A query with its match, and the variables that were declared before. */
function prepare(environment: string, vars: Variables) {
  const { query, regex, zone } =
    environments.get(environment) ?? assert.fail(`no environment ${environment}`);
  const name = query.name.toLowerCase().toString();
  const pattern = compilePattern(regex);
  const groups = pattern.match(name)?.groups ?? [];
  const match = { regex, groups, groupNumbers: pattern.groupNumbers };
  const facts: TemplateFacts = { query, name, zone, match, class: 255, type: 255, variables: [] };
  const variables = new Map<string, EnvironmentVariable<TemplateFacts>>();
  for (const [at, [variable, text]] of vars.entries()) {
    const expression = compileExpression(text, templateEnvironment(variables));
    facts.variables.push(expression.evaluate(facts));
    const type = expression.type.kind === "array" ? ARRAY : expression.type;
    variables.set(variable, { type, get: (from) => from.variables[at] ?? null });
  }
  return { facts, variables };
}

function runExpression({ env = "udp4", lang = "view", vars = [], expr }: ExpressionVector): unknown {
  try {
    const { facts, variables } = prepare(env, vars);
    if (lang === "template" || vars.length > 0) {
      return encodeValue(compileExpression(expr, templateEnvironment(variables)).evaluate(facts));
    }
    return encodeValue(compileExpression(expr, QUERY_ENVIRONMENT).evaluate(facts.query));
  } catch (error) {
    if (error instanceof LanguageError) return error.stage === "run" ? "runtime" : "compile";
    throw error;
  }
}

function runTemplate({ env = "udp4", vars = [], template }: TemplateVector): string {
  try {
    const { facts, variables } = prepare(env, vars);
    return compileTemplate(template).execute(templateData(facts, [...variables.keys()]));
  } catch (error) {
    if (!(error instanceof LanguageError)) throw error;
    const { line } = placeOf(template, error);
    return `${error.stage === "run" ? "exec" : "parse"} error in line ${line}`;
  }
}

/** All cases of a file in one test: thousands of tests would say less. */
function compare(
  cases: Iterable<{
    readonly id: string;
    readonly text: string;
    readonly expected: unknown;
    readonly actual: unknown;
  }>,
) {
  const wrong: unknown[] = [];
  const needless: string[] = [];
  for (const { id, text, expected, actual } of cases) {
    const isSame = isDeepStrictEqual(actual, expected);
    if (!isSame && !differences.has(id)) wrong.push({ id, text, expected, actual });
    if (isSame && differences.has(id)) needless.push(id);
  }
  assert.deepEqual(wrong, []);
  assert.deepEqual(needless, [], "listed as different, and are not");
}

test("expressions give what was recorded", () => {
  const vectors = readLines<ExpressionVector>("languages/expressions.jsonl");
  assert.ok(vectors.length > 3_000);
  compare(
    vectors.map((vector) => ({
      id: vector.id,
      text: vector.expr,
      expected: vector.error ?? withoutTypes(vector.result),
      actual: runExpression(vector),
    })),
  );
});

test("templates give what was recorded", () => {
  const vectors = readLines<TemplateVector>("languages/templates.jsonl");
  assert.ok(vectors.length > 1_000);
  compare(
    vectors.map((vector) => ({
      id: vector.id,
      text: vector.template,
      expected:
        vector.error?.replace(/^(\w+) (\d+).*/, "$1 error in line $2") ?? vector.output ?? vector.output_b64,
      actual: runTemplate(vector),
    })),
  );
});

test("docs/compatibility.md says why the others differ", () => {
  assert.deepEqual(unsaidReasons(differences.values()), []);
});
