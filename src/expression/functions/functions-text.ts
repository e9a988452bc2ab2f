/** Functions on text. */

import { fromJson, toJson } from "../evaluation/json.ts";
import { RunFault } from "../values/language-error.ts";
import { octetIndexOf } from "../values/octet-text.ts";
import { ARRAY, arrayOf, BOOL, INT, STRING, UNKNOWN } from "../values/types.ts";
import { type ExpressionValue, isAscii, isList, kindOf, valueText } from "../values/values.ts";
import {
  type AnyRun,
  type BuiltinFunction,
  countArgument,
  oneOf,
  plainFunction,
  textArgument,
} from "./function-kit.ts";

/** A function with only string arguments. */
function onStrings(
  name: string,
  count: number,
  apply: (texts: readonly string[], run: AnyRun) => ExpressionValue,
  result = STRING,
  least: number = count,
): BuiltinFunction {
  const parameters = new Array(count).fill(STRING);
  const call = (args: readonly ExpressionValue[], run: AnyRun): ExpressionValue => {
    const texts = args.map((arg) => textArgument(arg));
    run.spendText(texts.reduce((sum, text) => sum + text.length, 0));
    return apply(texts, run);
  };
  return plainFunction(name, parameters, result, call, least);
}

function splitting(name: string, keepSeparator: boolean): BuiltinFunction {
  return plainFunction(
    name,
    [STRING, STRING, INT],
    arrayOf(STRING),
    ([value, mark, most], run) => {
      const text = textArgument(value);
      run.spendText(text.length);
      const parts = split(
        text,
        textArgument(mark),
        most === undefined ? -1 : countArgument(most),
        keepSeparator,
      );
      run.spend(parts.length);
      return parts;
    },
    2,
  );
}

/** @param most maximum number of parts, the last with all the rest; negative for no limit */
function split(text: string, mark: string, most: number, keepSeparator: boolean): string[] {
  if (most === 0) return [];
  const bound = most < 0 ? Number.MAX_SAFE_INTEGER : most;
  if (mark === "") {
    const characters = Array.from(text);
    if (characters.length <= bound) return characters;
    return [...characters.slice(0, bound - 1), characters.slice(bound - 1).join("")];
  }
  const parts: string[] = [];
  let at = 0;
  while (parts.length < bound - 1) {
    const found = text.indexOf(mark, at);
    if (found < 0) break;
    parts.push(text.slice(at, keepSeparator ? found + mark.length : found));
    at = found + mark.length;
  }
  parts.push(text.slice(at));
  return parts;
}

const replace = plainFunction(
  "replace",
  [STRING, STRING, STRING, INT],
  STRING,
  ([value, old, by, most], run) => {
    const [text, from, to] = [textArgument(value), textArgument(old), textArgument(by)];
    const bound = most === undefined ? -1 : countArgument(most);
    const parts = split(text, from, bound < 0 ? -1 : bound + 1, false);
    run.spendText(text.length + parts.length * to.length);
    if (from !== "") return parts.join(to);
    return replaceNothing(Array.from(text), to, bound);
  },
  3,
);

/** An empty text matches before each character and at the end. */
function replaceNothing(characters: readonly string[], by: string, most: number): string {
  const bound = most < 0 ? characters.length + 1 : most;
  const replaced = characters.map((character, at) => (at < bound ? by : "") + character).join("");
  return bound > characters.length ? replaced + by : replaced;
}

function trimming(name: string, start: boolean, end: boolean): BuiltinFunction {
  return onStrings(
    name,
    2,
    ([text = "", characters]) => {
      const set = characters === undefined ? undefined : new Set(characters);
      const isCut = (character: string) => (set === undefined ? /\s/.test(character) : set.has(character));
      const all = Array.from(text);
      let [from, to] = [0, all.length];
      while (start && from < to && isCut(all[from] ?? "")) from++;
      while (end && to > from && isCut(all[to - 1] ?? "")) to--;
      return all.slice(from, to).join("");
    },
    STRING,
    1,
  );
}

const join = oneOrTwo("join", ([value, mark], run) => {
  if (value === undefined || !isList(value)) throw new RunFault(`cannot join ${kindOf(value ?? null)}`);
  const separator = mark === undefined ? "" : textArgument(mark);
  run.spend(value.length);
  const texts = value.map((item) => textArgument(item));
  run.spendText(texts.reduce((sum, text) => sum + text.length + separator.length, 0));
  return texts.join(separator);
});

function oneOrTwo(name: string, call: BuiltinFunction["call"]): BuiltinFunction {
  return plainFunction(name, [ARRAY, STRING], STRING, call, 1);
}

const repeat = plainFunction("repeat", [STRING, INT], STRING, ([value, times], run) => {
  const [text, count] = [textArgument(value), countArgument(times)];
  if (count < 0)
    throw new RunFault(`invalid argument for repeat: expected a count of 0 or more, got ${count}`);
  run.spend(Math.max(count, 1));
  run.spendText(text.length * count);
  return text.repeat(count);
});

const fromBase64 = onStrings("fromBase64", 1, ([text = ""]) => {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text))
    throw new RunFault("illegal base64 data");
  return Buffer.from(text, "base64").toString("utf8");
});

export const TEXT_FUNCTIONS: Readonly<Record<string, BuiltinFunction>> = {
  trim: trimming("trim", true, true),
  trimPrefix: onStrings(
    "trimPrefix",
    2,
    ([text = "", start = " "]) => (text.startsWith(start) ? text.slice(start.length) : text),
    STRING,
    1,
  ),
  trimSuffix: onStrings(
    "trimSuffix",
    2,
    ([text = "", end = " "]) => (text.endsWith(end) ? text.slice(0, text.length - end.length) : text),
    STRING,
    1,
  ),
  upper: onStrings("upper", 1, ([text = ""]) => changeCase(text, true)),
  lower: onStrings("lower", 1, ([text = ""]) => changeCase(text, false)),
  split: splitting("split", false),
  splitAfter: splitting("splitAfter", true),
  replace,
  repeat,
  join,
  indexOf: onStrings("indexOf", 2, ([text = "", part = ""]) => octetIndexOf(text, part, false), INT),
  lastIndexOf: onStrings("lastIndexOf", 2, ([text = "", part = ""]) => octetIndexOf(text, part, true), INT),
  hasPrefix: onStrings("hasPrefix", 2, ([text = "", start = ""]) => text.startsWith(start), BOOL),
  hasSuffix: onStrings("hasSuffix", 2, ([text = "", end = ""]) => text.endsWith(end), BOOL),
  toBase64: onStrings("toBase64", 1, ([text = ""]) => Buffer.from(text).toString("base64")),
  fromBase64,
  toJSON: plainFunction("toJSON", [UNKNOWN], STRING, ([value = null], run) => toJson(value, run)),
  fromJSON: onStrings("fromJSON", 1, ([text = ""], run) => fromJson(text, run), UNKNOWN),
  string: oneOf(
    () => true,
    () => "",
    () => STRING,
    (value, run) => valueText(value, run),
  ),
};

/** Character by character: one whose other case has several letters stays. */
function changeCase(text: string, upper: boolean): string {
  const change = (character: string) => (upper ? character.toUpperCase() : character.toLowerCase());
  if (isAscii(text)) return change(text);
  return Array.from(text)
    .map((one) => (Array.from(change(one)).length === 1 ? change(one) : one))
    .join("");
}
