/**
 * Label selectors in text form, as `kubectl -l` and the API server read them: requirements joined by commas, of the
 * forms `key`, `!key`, `key=value` (or `==`), `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key>1`, `key<1`.
 */

export type Labels = ReadonlyMap<string, string>;

interface Requirement {
  readonly key: string;
  readonly operator: "exists" | "absent" | "in" | "notin" | "above" | "below";
  readonly values: readonly string[];
}

/** A selector that does not parse. */
export class LabelSelectorError extends Error {
  override readonly name = "LabelSelectorError";
  readonly text: string;
  readonly reason: string;

  constructor(text: string, reason: string) {
    super(`not a label selector: "${text}": ${reason}`);
    this.text = text;
    this.reason = reason;
  }
}

export class LabelSelector {
  readonly #requirements: readonly Requirement[];
  readonly #text: string;

  private constructor(requirements: readonly Requirement[], text: string) {
    this.#requirements = requirements;
    this.#text = text;
  }

  /**
   * The empty text selects everything.
   * @throws LabelSelectorError
   */
  static parse(text: string): LabelSelector {
    return new LabelSelector(new SelectorReader(text).read(), text);
  }

  /** Selects what carries all of the labels given, as the `selector` of a Service does. */
  static ofLabels(labels: Iterable<readonly [key: string, value: string]>): LabelSelector {
    const pairs = [...labels];
    return new LabelSelector(
      pairs.map(([key, value]) => ({ key, operator: "in", values: [value] })),
      pairs.map(([key, value]) => `${key}=${value}`).join(","),
    );
  }

  /** As it was written, which is what an API server takes. */
  toString(): string {
    return this.#text;
  }

  matches(labels: Labels): boolean {
    return this.#requirements.every((requirement) => satisfies(labels.get(requirement.key), requirement));
  }
}

function satisfies(value: string | undefined, { operator, values }: Requirement): boolean {
  switch (operator) {
    case "exists":
      return value !== undefined;
    case "absent":
      return value === undefined;
    case "in":
      return value !== undefined && values.includes(value);
    case "notin":
      // An object without the label is selected too, as the API server does it.
      return value === undefined || !values.includes(value);
    case "above":
      return value !== undefined && INTEGER.test(value) && BigInt(value) > BigInt(values[0] ?? 0);
    case "below":
      return value !== undefined && INTEGER.test(value) && BigInt(value) < BigInt(values[0] ?? 0);
  }
}

const INTEGER = /^-?\d{1,18}$/;
const KEY = /^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;
const TOKEN = /==|!=|[=!<>(),]|[^\s=!<>(),]+/g;

class SelectorReader {
  readonly #text: string;
  readonly #tokens: string[];
  #position = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = text.match(TOKEN) ?? [];
  }

  read(): Requirement[] {
    const requirements: Requirement[] = [];
    if (this.#tokens.length === 0) return requirements;
    do {
      requirements.push(this.#requirement());
    } while (this.#take(","));
    const rest = this.#peek();
    if (rest !== undefined) throw this.#error(`expected "," or the end, found "${rest}"`);
    return requirements;
  }

  #requirement(): Requirement {
    if (this.#take("!")) return { key: this.#key(), operator: "absent", values: [] };
    const key = this.#key();
    const operator = this.#peek();
    if (operator === undefined || operator === ",") return { key, operator: "exists", values: [] };
    this.#position++;
    switch (operator) {
      case "=":
      case "==":
        return { key, operator: "in", values: [this.#value()] };
      case "!=":
        return { key, operator: "notin", values: [this.#value()] };
      case "in":
      case "notin":
        return { key, operator, values: this.#valueSet() };
      case ">":
        return { key, operator: "above", values: [this.#integer()] };
      case "<":
        return { key, operator: "below", values: [this.#integer()] };
      default:
        throw this.#error(`expected an operator (=, ==, !=, in, notin, <, >), found "${operator}"`);
    }
  }

  #key(): string {
    const token = this.#next("a label's key");
    if (!KEY.test(token)) throw this.#error(`"${token}" is not a label's key`);
    return token;
  }

  /** The empty value needs no token: `key=` and `key in (a,)` name it. */
  #value(): string {
    const token = this.#peek();
    if (token === undefined || token === "," || token === ")") return "";
    this.#position++;
    if (!VALUE.test(token)) throw this.#error(`"${token}" is not a label's value`);
    return token;
  }

  #integer(): string {
    const token = this.#next("a whole number");
    if (!INTEGER.test(token)) throw this.#error(`"${token}" is not a whole number`);
    return token;
  }

  #valueSet(): string[] {
    if (!this.#take("(")) throw this.#error(`expected "(" and values`);
    const values: string[] = [];
    do {
      values.push(this.#value());
    } while (this.#take(","));
    if (!this.#take(")")) throw this.#error(`expected ")" after the values`);
    return values;
  }

  #next(what: string): string {
    const token = this.#peek();
    if (token === undefined) throw this.#error(`ends where ${what} is expected`);
    this.#position++;
    return token;
  }

  #take(token: string): boolean {
    if (this.#peek() !== token) return false;
    this.#position++;
    return true;
  }

  #peek(): string | undefined {
    return this.#tokens[this.#position];
  }

  #error(reason: string): LabelSelectorError {
    return new LabelSelectorError(this.#text, reason);
  }
}
