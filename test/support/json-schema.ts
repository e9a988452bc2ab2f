/** As much of JSON Schema (draft 7) as the values of the Helm chart are described with. Any other keyword is an error. */

type Schema = Readonly<Record<string, unknown>>;
type Check = (expected: never, value: unknown, schema: Schema, path: string) => string[];

/** @returns what is wrong, each with its place */
export function schemaProblems(schema: unknown, value: unknown, path = "values"): string[] {
  return Object.entries(Object(schema) as Schema).flatMap(([keyword, expected]) => {
    const check = KEYWORDS[keyword];
    if (check === undefined) throw new ReferenceError(`JSON Schema keyword ${keyword} is not known here`);
    return check(expected as never, value, schema as Schema, path);
  });
}

const nothing = () => [];
const unless = (right: boolean, problem: string) => (right ? [] : [problem]);

const KEYWORDS: Readonly<Record<string, Check>> = {
  $schema: nothing,
  title: nothing,
  description: nothing,
  type: (types: string | string[], value, _, path) =>
    unless(
      [types].flat().some((type) => isOfType(type, value)),
      `${path} is no ${types}`,
    ),
  anyOf: (schemas: Schema[], value, _, path) =>
    unless(
      schemas.some((schema) => schemaProblems(schema, value, path).length === 0),
      `${path} is none of what it may be`,
    ),
  enum: (words: unknown[], value, _, path) => unless(words.includes(value), `${path} is none of ${words}`),
  minimum: (bound: number, value, _, path) =>
    unless(typeof value !== "number" || value >= bound, `${path} is below ${bound}`),
  exclusiveMinimum: (bound: number, value, _, path) =>
    unless(typeof value !== "number" || value > bound, `${path} is not above ${bound}`),
  maximum: (bound: number, value, _, path) =>
    unless(typeof value !== "number" || value <= bound, `${path} is above ${bound}`),
  minLength: (bound: number, value, _, path) =>
    unless(typeof value !== "string" || value.length >= bound, `${path} is too short`),
  pattern: (pattern: string, value, _, path) =>
    unless(typeof value !== "string" || new RegExp(pattern).test(value), `${path} does not match ${pattern}`),
  minItems: (bound: number, value, _, path) =>
    unless(!Array.isArray(value) || value.length >= bound, `${path} has too few items`),
  items: (item: Schema, value, _, path) =>
    Array.isArray(value)
      ? value.flatMap((each, index) => schemaProblems(item, each, `${path}[${index}]`))
      : [],
  required: (names: string[], value, _, path) =>
    isObject(value)
      ? names.filter((name) => !(name in value)).map((name) => `${path}.${name} is missing`)
      : [],
  properties: (properties: Schema, value, _, path) =>
    isObject(value)
      ? Object.entries(properties).flatMap(([name, schema]) =>
          name in value ? schemaProblems(schema, value[name], `${path}.${name}`) : [],
        )
      : [],
  additionalProperties: (allowed: boolean | Schema, value, schema, path) => {
    if (!isObject(value)) return [];
    const others = Object.keys(value).filter((name) => !(name in Object(schema.properties)));
    if (allowed === false) return others.map((name) => `${path}.${name} is not known`);
    return others.flatMap((name) => schemaProblems(allowed, value[name], `${path}.${name}`));
  },
};

function isOfType(type: string, value: unknown): boolean {
  switch (type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "null":
      return value === null;
    case "integer":
      return Number.isInteger(value);
    default:
      // string, number, boolean
      return typeof value === type;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
