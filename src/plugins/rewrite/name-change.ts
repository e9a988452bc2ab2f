/** The five ways in which rules match and change names. */
import { Name } from "../../dns/index.ts";
import { FOLD, octetAt } from "../../dns/octets.ts";
import type { Query } from "../../plugin/index.ts";
import {
  beginsWithDot,
  type NameText,
  nameOfResult,
  nameOfText,
  parseTextPart,
  type TextPart,
} from "./name-text.ts";
import type { PatternTemplate } from "./pattern-template.ts";

export const MATCH_KINDS = ["exact", "prefix", "suffix", "substring", "regex"] as const;
export type MatchKind = (typeof MATCH_KINDS)[number];

/** An invalid name that a rule made, as text. */
export class InvalidName {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Matches names and makes new ones. Allocates nothing for a name that does not match. */
export interface NameChanger {
  matches(asked: Query, name: NameText): boolean;
  /** Called for names that match. */
  change(asked: Query, name: NameText): Name | InvalidName;
}

export class ExactName implements NameChanger {
  readonly #from: TextPart;
  readonly #wire: Uint8Array | undefined;
  readonly to: Name | InvalidName;

  constructor(from: string, to: string) {
    this.#from = parseTextPart(from, true);
    this.#wire = nameOfText(this.#from)?.wire;
    this.to = nameOfText(parseTextPart(to, true)) ?? new InvalidName(to);
  }

  /** Compares bytes of the query, so that queries that do not match need no `Name`. */
  matches({ bytes, nameEnd }: Query): boolean {
    const wire = this.#wire;
    if (wire === undefined || nameEnd - 12 !== wire.length) return false;
    for (let at = 0; at < wire.length; at++)
      if (octetAt(FOLD, octetAt(bytes, 12 + at)) !== octetAt(wire, at)) return false;
    return true;
  }

  change(): Name | InvalidName {
    return this.to;
  }
}

/** Replaces a suffix that begins with a dot by another one: whole labels are replaced in wire form. */
export class LabelSuffix implements NameChanger {
  readonly from: Uint8Array;
  readonly to: Uint8Array;

  private constructor(from: Uint8Array, to: Uint8Array) {
    this.from = from;
    this.to = to;
  }

  /** @returns `undefined` for other suffixes */
  static of(from: TextPart, to: TextPart): LabelSuffix | undefined {
    const [old, made] = [from, to].map((part) =>
      beginsWithDot(part) ? nameOfText(part.length === 1 ? part : part.slice(1))?.wire : undefined,
    );
    return old === undefined || made === undefined ? undefined : new LabelSuffix(old, made);
  }

  matches({ bytes, nameEnd }: Query): boolean {
    return this.#place(bytes, nameEnd) > 12;
  }

  change({ bytes, nameEnd, name }: Query): Name | InvalidName {
    const kept = this.#place(bytes, nameEnd) - 12;
    if (kept + this.to.length > 255) return new InvalidName(`${name.toLowerCase()}`);
    const wire = new Uint8Array(kept + this.to.length);
    for (let at = 0; at < kept; at++) wire[at] = octetAt(FOLD, octetAt(bytes, 12 + at));
    wire.set(this.to, kept);
    return Name.fromCheckedWire(wire);
  }

  /** Offset of the suffix in a message, -1 if it is absent. */
  #place(bytes: Uint8Array, nameEnd: number): number {
    const { from } = this;
    const place = nameEnd - from.length;
    let at = 12;
    while (at < place) at += octetAt(bytes, at) + 1;
    if (at !== place) return -1;
    for (let index = 0; index < from.length; index++)
      if (octetAt(FOLD, octetAt(bytes, place + index)) !== octetAt(from, index)) return -1;
    return place;
  }
}

/** Prefixes, substrings, and suffixes that end within a label. */
export class TextChange implements NameChanger {
  readonly #kind: "prefix" | "suffix" | "substring";
  readonly from: TextPart;
  readonly to: TextPart;

  constructor(kind: "prefix" | "suffix" | "substring", from: TextPart, to: TextPart) {
    this.#kind = kind;
    this.from = from;
    this.to = to;
  }

  matches(_asked: Query, name: NameText): boolean {
    switch (this.#kind) {
      case "prefix":
        return name.startsWith(this.from);
      case "suffix":
        return name.endsWith(this.from);
      case "substring":
        return name.includes(this.from);
    }
  }

  change(asked: Query, name: NameText): Name | InvalidName {
    return this.#changed(name) ?? new InvalidName(`${asked.name.toLowerCase()}`);
  }

  #changed(name: NameText): Name | undefined {
    switch (this.#kind) {
      case "prefix":
        return name.withPrefix(this.from, this.to);
      case "suffix":
        return name.withSuffix(this.from, this.to);
      case "substring":
        return name.withAllReplaced(this.from, this.to);
    }
  }
}

export class PatternName implements NameChanger {
  readonly #template: PatternTemplate;
  #asked: Query | undefined;
  #result: string | undefined;

  constructor(template: PatternTemplate) {
    this.#template = template;
  }

  matches(asked: Query): boolean {
    this.#result = this.#template.rewrite(asked.name.toLowerCase().toString());
    this.#asked = asked;
    return this.#result !== undefined;
  }

  change(asked: Query): Name | InvalidName {
    if (this.#asked !== asked) this.matches(asked);
    const text = this.#result ?? "";
    this.#asked = undefined;
    return nameOfResult(text) ?? new InvalidName(text);
  }
}

/** Matches names for `ttl` and `rcode` rules. */
export interface NameCondition {
  matches(asked: Query, name: NameText): boolean;
}
