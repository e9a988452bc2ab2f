import type { Directive } from "../../corefile/tree.ts";
import { parseClass, parseRcode, Rcode } from "../../dns/numbers.ts";
import { parseRecordType } from "../../dns/type-names.ts";
import type { EnvironmentVariable } from "../../expression/evaluation/environment.ts";
import type { Expression } from "../../expression/expression.ts";
import { FUNCTIONS } from "../../expression/functions/functions.ts";
import { PREDICATE_FUNCTIONS } from "../../expression/syntax/predicate-names.ts";
import { OPERATOR_WORDS } from "../../expression/syntax/tokens.ts";
import type { Template } from "../../expression/templates/template.ts";
import { ARRAY } from "../../expression/values/types.ts";
import { compilePattern, type Pattern, PatternError } from "../../lib/text/pattern.ts";
import { INVALID } from "../../plugin/config/arguments.ts";
import type { ConfigContext } from "../../plugin/config/context.ts";
import { ignored, type Option } from "../../plugin/config/options.ts";
import { readExpression, readTemplate } from "../../plugin/config/source-text.ts";
import {
  type ConfigSchema,
  customDirective,
  directive,
  type Fallthrough,
  fallthrough,
  integer,
  option,
  optional,
  required,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";
import { type TemplateFacts, templateEnvironment } from "./facts.ts";

/** One `template` directive. */
export interface TemplateRule {
  /** 255 for all. */
  readonly class: number;
  readonly type: number;
  readonly zones: ZoneList;
  readonly patterns: readonly Pattern[];
  readonly variables: readonly TemplateVariable[];
  readonly conditions: readonly Expression<TemplateFacts>[];
  readonly answer: readonly Template[];
  readonly additional: readonly Template[];
  readonly authority: readonly Template[];
  readonly rcode: number;
  readonly extendedError: { readonly code: number; readonly text: string } | undefined;
  readonly fallthrough: Fallthrough;
  /** The directive and its place, for messages: "template IN A (Corefile:3)". */
  readonly title: string;
}

export interface TemplateVariable {
  readonly name: string;
  readonly expression: Expression<TemplateFacts>;
}

const queryClass: Value<number> = {
  expected: "a class in upper case: IN, CH, HS or ANY",
  parse: (word) =>
    (isUpperCase(word) ? parseClass(word) : undefined) ?? new ValueProblem(`invalid query class ${word}`),
};

const queryType: Value<number> = {
  expected: "a type in upper case, such as A or ANY",
  parse: (word) =>
    (isUpperCase(word) ? parseRecordType(word) : undefined) ?? new ValueProblem(`invalid RR class ${word}`),
};

function isUpperCase(word: string): boolean {
  return word === word.toUpperCase();
}

const pattern: Value<Pattern> = {
  expected: "a regular expression (RE2)",
  parse(word) {
    try {
      return compilePattern(word);
    } catch (error) {
      if (error instanceof PatternError)
        return new ValueProblem(`could not parse regex: ${word}, ${error.message}`);
      throw error;
    }
  },
};

/** CoreDNS uses the older name of rcode 16. */
const rcode: Value<number> = {
  expected: "an rcode in upper case, such as NXDOMAIN",
  parse(word) {
    if (word === "BADSIG") return Rcode.BADVERS;
    const found = /^[A-Z]+$/.test(word) && word !== "BADVERS" ? parseRcode(word) : undefined;
    return found ?? new ValueProblem(`unknown rcode ${word}`);
  },
};

const errorCode = integer({
  min: 0,
  max: 0xffff,
  problem: (word) => `error parsing extended DNS error code ${word}`,
});

/** Options whose words are all templates. */
const templates: Option<readonly Template[]> = {
  usage: "RR...",
  read(lines, { report }) {
    const read = lines.flatMap(({ name, args }) => {
      if (args.length > 0) return args.map((token) => readTemplate(token, report));
      reportMissing(name, 'a record in quotes, such as "{{ .Name }} 60 IN A 192.0.2.1"', report);
      return [undefined];
    });
    const valid = read.filter((template) => template !== undefined);
    return valid.length === read.length ? valid : INVALID;
  },
};

/** Options that are parsed later, in their relative order. */
const readLater = (usage: string): Option<undefined> => ({ usage, read: () => undefined });

const declared = directive({
  args: { class: required(queryClass), type: required(queryType), zones: zones() },
  options: {
    match: patterns(),
    var: readLater("NAME EXPRESSION"),
    expr: readLater("EXPRESSION"),
    answer: templates,
    additional: templates,
    authority: templates,
    rcode: single(rcode, Rcode.NOERROR),
    ederror: option({ code: required(errorCode), text: optional(text(), "") }),
    fallthrough: fallthrough(),
    upstream: ignored("internal lookups always go through this server"),
  },
  occurrences: "each",
});

function patterns(): Option<readonly Pattern[]> {
  const words = option({ pattern: rest(pattern, 1) });
  return {
    usage: "REGEX...",
    read(lines, context) {
      const read = lines.map((line) => words.read([line], context));
      return read.includes(INVALID)
        ? INVALID
        : read.flatMap((line) => (line === INVALID ? [] : (line?.pattern ?? [])));
    },
  };
}

/** All `template` directives of a block form one list, tried in order. */
export const templateConfig: ConfigSchema<readonly TemplateRule[]> = customDirective(
  declared.description,
  (occurrences, context) => {
    const rules = occurrences.map((occurrence) => readRule(occurrence, context));
    const valid = rules.filter((rule) => rule !== undefined);
    return valid.length === occurrences.length ? [valid] : undefined;
  },
);

function readRule(occurrence: Directive, context: ConfigContext): TemplateRule | undefined {
  const [config] = declared.parse([occurrence], context) ?? [];
  const computed = readComputed(occurrence.block ?? [], context);
  if (config === undefined || computed === undefined) return undefined;
  const { match, ederror, ...others } = config;
  const { span } = occurrence.name;
  return {
    ...others,
    ...computed,
    patterns: match,
    extendedError: ederror,
    title: `template ${occurrence.args.map((token) => token.text).join(" ")} (${span.file}:${span.line})`,
  };
}

/** Parses `var` and `expr` in order: an expression can use the variables above it. */
function readComputed(
  lines: readonly Directive[],
  { report }: ConfigContext,
): Pick<TemplateRule, "variables" | "conditions"> | undefined {
  const variables: TemplateVariable[] = [];
  const conditions: Expression<TemplateFacts>[] = [];
  const known = new Map<string, EnvironmentVariable<TemplateFacts>>();
  let valid = true;
  for (const line of lines) {
    const { name, args } = line;
    if (name.text === "expr") {
      if (args.length === 0) reportMissing(name, "an expression such as client_ip() == '192.0.2.1'", report);
      const expression =
        args.length > 0 && readExpression(args, templateEnvironment(known), report, COULD_NOT);
      if (expression) conditions.push(expression);
      else valid = false;
    } else if (name.text === "var") {
      const variable = readVariable(line, known, report);
      if (variable === undefined) {
        valid = false;
        continue;
      }
      const at = variables.push(variable) - 1;
      // Elements of arrays lose their type between expressions.
      const type = variable.expression.type.kind === "array" ? ARRAY : variable.expression.type;
      known.set(variable.name, { type, get: (facts) => facts.variables[at] ?? null });
    }
  }
  return valid ? { variables, conditions } : undefined;
}

const COULD_NOT = "could not compile expression";

function readVariable(
  { name: keyword, args }: Directive,
  known: ReadonlyMap<string, EnvironmentVariable<TemplateFacts>>,
  report: ConfigContext["report"],
): TemplateVariable | undefined {
  const [name, ...words] = args;
  if (name === undefined || words.length === 0) {
    reportMissing(name ?? keyword, "a name and an expression, such as: var number int(group(1))", report);
    return undefined;
  }
  const problem = problemOfName(name.text, known);
  if (problem !== undefined) {
    report.error("PLUGIN_BAD_VALUE", name.span, problem, { expected: "a name of letters, digits and _" });
    return undefined;
  }
  const expression = readExpression(words, templateEnvironment(known), report, `${COULD_NOT}: ${name.text}`);
  return expression && { name: name.text, expression };
}

function problemOfName(name: string, known: ReadonlyMap<string, unknown>): string | undefined {
  if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name)) return `invalid variable name "${name}"`;
  const { functions } = templateEnvironment(new Map());
  const isTaken =
    functions.has(name) ||
    FUNCTIONS.has(name) ||
    PREDICATE_FUNCTIONS.has(name) ||
    OPERATOR_WORDS.has(name) ||
    LANGUAGE_WORDS.has(name) ||
    known.has(name);
  return isTaken ? `variable name "${name}" is reserved` : undefined;
}

/** Constants, and further functions of CoreDNS. */
const LANGUAGE_WORDS: ReadonlySet<string> = new Set([
  "true",
  "false",
  "nil",
  "now",
  "date",
  "duration",
  "timezone",
]);

function reportMissing(at: Directive["name"], expected: string, report: ConfigContext["report"]): void {
  const message = `Wrong argument count or unexpected line ending after '${at.text}'`;
  report.error("PLUGIN_ARGUMENT_MISSING", at.span, message, { expected });
}
