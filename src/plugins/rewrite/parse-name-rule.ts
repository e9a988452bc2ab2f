/** `name [exact|prefix|suffix|substring|regex] FROM TO [metadata] [answer auto | answer name RE TO | answer value RE TO]...` */
import type { Token } from "../../corefile/tokens.ts";
import type { ConfigContext } from "../../plugin/config/context.ts";
import { ValueProblem } from "../../plugin/index.ts";
import { LabelledName } from "./labelled-name.ts";
import {
  ExactName,
  InvalidName,
  LabelSuffix,
  MATCH_KINDS,
  type MatchKind,
  type NameChanger,
  PatternName,
  TextChange,
} from "./name-change.ts";
import { ChangesInTurn, NameRule, PatternBack, SuffixBack, TextSuffixBack } from "./name-rule.ts";
import { nameOfText, parseTextPart } from "./name-text.ts";
import { type PatternTemplate, parseTemplate } from "./pattern-template.ts";
import type { ReplyChange, RewriteRule } from "./rule.ts";
import { RuleProblem, type RuleWords, wordAt } from "./rule-words.ts";

export function parseNameRule({ args, continues, text, context }: RuleWords): RewriteRule {
  if (args.length < 2)
    throw new RuleProblem("too few arguments for a name rule", { at: args[0], expected: "FROM TO" });
  const isShort = args.length === 2;
  const kind = isShort ? "exact" : matchKind(args[0]);
  const [from, to, ...rest] = isShort ? args : args.slice(1);
  const usesMetadata = wordAt(rest, 0) === "metadata";
  if (usesMetadata && kind !== "regex")
    throw new RuleProblem("metadata is only supported for regex name rules", { at: rest[0] });
  const answers = readAnswers(usesMetadata ? rest.slice(1) : rest, kind);
  const changer = usesMetadata ? labelledName(from, to) : makeChanger(kind, from, to, context);
  const patterns =
    answers.names.length + answers.values.length > 0
      ? new PatternBack(answers.names, answers.values)
      : undefined;
  const putsNameBack = kind === "exact" || (answers.isAuto && kind !== "suffix");
  const fixed = answers.isAuto && kind === "suffix" ? inTurn(patterns, suffixBack(changer)) : patterns;
  return new NameRule({ continues, text, changer, putsNameBack, fixed });
}

function matchKind(word: Token | undefined): MatchKind {
  const kind = MATCH_KINDS.find((known) => known === word?.text.toLowerCase());
  if (kind !== undefined) return kind;
  const message = `name rule supports only exact, prefix, suffix, substring, and regex name matching, received: ${word?.text}`;
  throw new RuleProblem(message, { at: word, expected: `one of ${MATCH_KINDS.join(", ")}` });
}

function makeChanger(
  kind: MatchKind,
  from: Token | undefined,
  to: Token | undefined,
  { report }: ConfigContext,
): NameChanger {
  const [fromText, toText] = [from?.text ?? "", to?.text ?? ""];
  if (kind === "regex") return new PatternName(template(from, fromText, toText));
  const [fromPart, toPart] = [parseTextPart(fromText, true), parseTextPart(toText, true)];
  if (kind === "exact") {
    const exact = new ExactName(fromText, toText);
    if (from !== undefined && nameOfText(fromPart) === undefined) {
      const message = `'${fromText}' is not a domain name: the rule never matches`;
      report.warning("REWRITE_NEVER_MATCHES", from.span, message);
    } else if (to !== undefined && exact.to instanceof InvalidName) {
      const message = `'${toText}' is not a domain name: queries that the rule matches fail with SERVFAIL`;
      report.warning("REWRITE_BAD_NAME", to.span, message);
    }
    return exact;
  }
  const labels = kind === "suffix" ? LabelSuffix.of(fromPart, toPart) : undefined;
  return labels ?? new TextChange(kind, fromPart, toPart);
}

function labelledName(from: Token | undefined, to: Token | undefined): NameChanger {
  const made = LabelledName.of(from?.text ?? "", to?.text ?? "");
  if (!(made instanceof ValueProblem)) return made;
  throw new RuleProblem(made.message, { at: made.message.includes("regex") ? from : to });
}

function template(from: Token | undefined, expression: string, result: string): PatternTemplate {
  const parsed = parseTemplate(expression, result);
  if (parsed instanceof ValueProblem) throw new RuleProblem(parsed.message, { at: from });
  return parsed;
}

interface Answers {
  readonly isAuto: boolean;
  readonly names: readonly PatternTemplate[];
  readonly values: readonly PatternTemplate[];
}

function readAnswers(words: readonly Token[], kind: MatchKind): Answers {
  const names: PatternTemplate[] = [];
  const values: PatternTemplate[] = [];
  let isAuto = false;
  if (words.length > 0 && wordAt(words, 0) !== "answer") {
    throw new RuleProblem(
      words.length === 1
        ? `invalid arguments for ${kind} rule`
        : `exceeded the number of arguments for a non-answer rule argument for ${kind} rule`,
      { at: words[0], expected: "answer auto, answer name RE TO, or answer value RE TO" },
    );
  }
  for (let at = 0; at < words.length; ) {
    if (wordAt(words, at) === "answer") at++;
    const word = words[at];
    if (word === undefined) {
      throw new RuleProblem(`type missing for answer rule for ${kind} rule`, {
        at: words.at(-1),
        expected: "auto, name or value",
      });
    }
    if (word.text === "auto") {
      isAuto = true;
      at++;
    } else if (word.text === "name" || word.text === "value") {
      (word.text === "name" ? names : values).push(readPattern(word, words.slice(at + 1, at + 3), kind));
      at += 3;
    } else {
      throw new RuleProblem(`invalid type "${word.text}" for answer rule for ${kind} rule`, {
        at: word,
        expected: "auto, name or value",
      });
    }
  }
  if (isAuto && names.length > 0) {
    const message = "auto name answer rule cannot be combined with explicit name anwer rules";
    throw new RuleProblem(message, { at: words[0] });
  }
  return { isAuto, names, values };
}

function readPattern(type: Token, [expression, result]: readonly Token[], kind: MatchKind): PatternTemplate {
  const about = `${type.text} answer rule for ${kind} rule`;
  if (expression === undefined || result === undefined)
    throw new RuleProblem(`${about}: 2 arguments required`, { at: type, expected: "RE TO" });
  const parsed = parseTemplate(expression.text, result.text, { prefix: `${about}: ` });
  if (parsed instanceof ValueProblem) throw new RuleProblem(parsed.message, { at: expression });
  return parsed;
}

function suffixBack(changer: NameChanger): ReplyChange | undefined {
  if (changer instanceof LabelSuffix) return new SuffixBack(changer);
  return changer instanceof TextChange ? new TextSuffixBack(changer.to, changer.from) : undefined;
}

function inTurn(...changes: readonly (ReplyChange | undefined)[]): ReplyChange | undefined {
  const all = changes.filter((change) => change !== undefined);
  return all.length > 1 ? new ChangesInTurn(all) : all[0];
}
