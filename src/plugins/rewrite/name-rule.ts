/** `name` rules: the name of the query, and the names in its reply. */
import { Name } from "../../dns/index.ts";
import type { WireName } from "../../dns/wire-name.ts";
import type { Query } from "../../plugin/index.ts";
import { InvalidName, type LabelSuffix, type NameChanger } from "./name-change.ts";
import { NameText, nameOfResult, type TextPart } from "./name-text.ts";
import type { PatternTemplate } from "./pattern-template.ts";
import { type Applied, NOT_APPLIED, type ReplyChange, type RewriteRule } from "./rule.ts";

export class NameRule implements RewriteRule {
  readonly continues: boolean;
  readonly text: string;
  readonly #changer: NameChanger;
  readonly #backOfAll: ReplyChange | undefined;
  readonly #putsNameBack: boolean;

  /** @param fixed changes to every reply that do not depend on the name of the query */
  constructor(options: {
    continues: boolean;
    text: string;
    changer: NameChanger;
    putsNameBack: boolean;
    fixed: ReplyChange | undefined;
  }) {
    this.continues = options.continues;
    this.text = options.text;
    this.#changer = options.changer;
    this.#putsNameBack = options.putsNameBack;
    this.#backOfAll = options.fixed;
  }

  apply(asked: Query, name: NameText): Applied | typeof NOT_APPLIED {
    if (!this.#changer.matches(asked, name)) return NOT_APPLIED;
    const changed = this.#changer.change(asked, name);
    if (changed instanceof InvalidName) return { query: asked, invalid: changed.text };
    const query = asked.derive({ name: changed });
    const reply = this.#putsNameBack ? new NameBack(changed, asked, this.#backOfAll) : this.#backOfAll;
    return { query, reply };
  }
}

/** Maps a name, and all names below it, back to the client's name. */
export class NameBack implements ReplyChange {
  readonly restoresQuestion: boolean;
  readonly #changed: Uint8Array;
  readonly #original: Query;
  readonly #further: ReplyChange | undefined;

  constructor(changed: Name, original: Query, further: ReplyChange | undefined) {
    this.#changed = changed.folded;
    this.#original = original;
    this.#further = further;
    this.restoresQuestion = further?.owner === undefined;
  }

  owner(name: WireName): void {
    this.#further?.owner?.(name);
    this.#putBack(name);
  }

  value(name: WireName): void {
    this.#further?.value?.(name);
    this.#putBack(name);
  }

  #putBack(name: WireName): void {
    const place = name.placeOf(this.#changed);
    // Every name lies below the root, so only the root itself is mapped back to the client's name.
    if (place === 0 || (place > 0 && this.#changed.length > 1))
      name.replaceFrom(place, this.#original.bytes, 12, this.#original.nameEnd);
  }
}

/** Maps a suffix of whole labels back. */
export class SuffixBack implements ReplyChange {
  readonly restoresQuestion = true;
  readonly #changed: Uint8Array;
  readonly #original: Uint8Array;

  constructor({ from, to }: LabelSuffix) {
    this.#changed = to;
    this.#original = from;
  }

  owner(name: WireName): void {
    const place = name.placeOf(this.#changed);
    if (place > 0) name.replaceFrom(place, this.#original);
  }

  value(name: WireName): void {
    this.owner(name);
  }
}

/** Maps a suffix back that may end within a label. */
export class TextSuffixBack implements ReplyChange {
  readonly #changed: TextPart;
  readonly #original: TextPart;
  readonly #text = new NameText();

  constructor(changed: TextPart, original: TextPart) {
    this.#changed = changed;
    this.#original = original;
  }

  owner(name: WireName): void {
    this.#text.read(name.octets, 0, name.length);
    if (!this.#text.endsWith(this.#changed)) return;
    const original = this.#text.withSuffix(this.#changed, this.#original);
    if (original !== undefined) name.set(original);
  }

  value(name: WireName): void {
    this.owner(name);
  }
}

/** `answer name RE TO` and `answer value RE TO`; as with all rules for replies, the last one applies first. */
export class PatternBack implements ReplyChange {
  readonly #owners: readonly PatternTemplate[];
  readonly #values: readonly PatternTemplate[];

  constructor(owners: readonly PatternTemplate[], values: readonly PatternTemplate[]) {
    this.#owners = owners.toReversed();
    this.#values = values.toReversed();
  }

  owner(name: WireName): void {
    for (const template of this.#owners) rewriteBy(template, name);
  }

  value(name: WireName): void {
    for (const template of this.#values) rewriteBy(template, name);
  }
}

/** Several changes of one rule, in order. */
export class ChangesInTurn implements ReplyChange {
  readonly #changes: readonly ReplyChange[];

  constructor(changes: readonly ReplyChange[]) {
    this.#changes = changes;
  }

  owner(name: WireName): void {
    for (const change of this.#changes) change.owner?.(name);
  }

  value(name: WireName): void {
    for (const change of this.#changes) change.value?.(name);
  }
}

function rewriteBy(template: PatternTemplate, name: WireName): void {
  const wire = name.octets.slice(0, name.length);
  const text = template.rewrite(Name.fromCheckedWire(wire).toLowerCase().toString());
  const changed = text === undefined ? undefined : nameOfResult(text);
  if (changed !== undefined) name.set(changed);
}
