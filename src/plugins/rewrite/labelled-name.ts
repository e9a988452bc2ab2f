/** `rewrite name regex FROM TO metadata`: the new name contains groups of the old one and metadata of the query. */

import type { Name } from "../../dns/index.ts";
import { compilePattern, type Pattern, PatternError } from "../../lib/text/pattern.ts";
import { type Query, ValueProblem } from "../../plugin/index.ts";
import { InvalidName, type NameChanger } from "./name-change.ts";
import { nameOfResult } from "./name-text.ts";

/** The parts of a name, from left to right. */
export type NamePiece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "group"; readonly group: number }
  | { readonly kind: "label"; readonly label: string };

export class LabelledName implements NameChanger {
  readonly #pattern: Pattern;
  readonly #pieces: readonly NamePiece[];
  #asked: Query | undefined;
  #result: string | undefined;

  constructor(pattern: Pattern, pieces: readonly NamePiece[]) {
    this.#pattern = pattern;
    this.#pieces = pieces;
  }

  static of(expression: string, result: string): LabelledName | ValueProblem {
    let pattern: Pattern;
    try {
      pattern = compilePattern(expression);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      const isTooLong = error.message.startsWith("regex pattern too long");
      return new ValueProblem(isTooLong ? error.message : `invalid regex matching pattern: ${expression}`);
    }
    const pieces = readPieces(result, pattern.groupCount);
    return pieces instanceof ValueProblem ? pieces : new LabelledName(pattern, pieces);
  }

  /** A label without a value counts as a name that does not match. */
  matches(asked: Query): boolean {
    this.#result = this.#made(asked);
    this.#asked = asked;
    return this.#result !== undefined;
  }

  change(asked: Query): Name | InvalidName {
    if (this.#asked !== asked) this.matches(asked);
    const text = this.#result ?? "";
    this.#asked = undefined;
    return nameOfResult(text) ?? new InvalidName(text);
  }

  #made(asked: Query): string | undefined {
    const match = this.#pattern.match(asked.name.toLowerCase().toString());
    if (match === undefined) return undefined;
    let text = "";
    for (const piece of this.#pieces) {
      if (piece.kind === "text") text += piece.text;
      else if (piece.kind === "group") text += match.groups[piece.group] ?? "";
      else {
        const value = asked.metadataValue(piece.label);
        if (value === undefined || value === "") {
          asked.trace?.note(
            `the metadata label '${piece.label}' has no value: a rewrite rule does not match`,
          );
          return undefined;
        }
        text += value;
      }
    }
    return text;
  }
}

function readPieces(text: string, groupCount: number): NamePiece[] | ValueProblem {
  const pieces: NamePiece[] = [];
  for (const [part] of text.matchAll(/\{[^{}]*\}|[^{}]+|[{}]/g)) {
    if (part === "{") return new ValueProblem("unclosed placeholder in metadata name replacement");
    if (part === "}") return new ValueProblem("unmatched closing brace in metadata name replacement");
    const inner = part.startsWith("{") ? part.slice(1, -1) : undefined;
    if (inner === undefined) pieces.push({ kind: "text", text: part });
    else if (/^\d+$/.test(inner)) {
      if (Number(inner) > groupCount)
        return new ValueProblem(`capture group ${inner} does not exist in name matching pattern`);
      pieces.push({ kind: "group", group: Number(inner) });
    } else if (/^[^/]+\/.+$/.test(inner)) pieces.push({ kind: "label", label: inner });
    else return new ValueProblem(`invalid metadata label "${inner}" in name replacement`);
  }
  return pieces;
}
