/** Go's template language, as far as records are written in it: compiled once at set-up, run for each query. */
import type { LanguageError } from "../values/language-error.ts";
import { Executor } from "./executor.ts";
import { TEMPLATE_FUNCTIONS } from "./functions.ts";
import { parseTemplate, type TemplateSet } from "./parser.ts";
import type { TemplateValue } from "./template-value.ts";

const FUNCTION_NAMES: ReadonlySet<string> = new Set(TEMPLATE_FUNCTIONS.keys());

/** The name of the main template, by which it can call itself. */
const MAIN = "answer";

export class Template {
  readonly text: string;
  readonly #templates: TemplateSet;

  constructor(text: string, templates: TemplateSet) {
    this.text = text;
    this.#templates = templates;
  }

  /**
   * What stands behind a field at the start of the template, where the rest of it is the same for all data.
   * @returns `undefined` for any other template
   */
  textBehind(field: string): string | undefined {
    const [first, ...rest] = this.#templates.get(MAIN) ?? [];
    if (first?.kind !== "action" || first.pipe.variables.length > 0) return undefined;
    const [operand, ...others] = first.pipe.commands.flatMap(({ operands }) => operands);
    if (operand?.kind !== "field" || operand.fields.join(".") !== field || others.length > 0)
      return undefined;
    return rest.every((statement) => statement.kind === "text")
      ? rest.map(({ text }) => text).join("")
      : undefined;
  }

  /**
   * The text that the template makes of `data`. It ends within some milliseconds, whatever the template says.
   * @throws LanguageError of stage `run`
   */
  execute(data: TemplateValue): string {
    return new Executor(this.#templates).run(MAIN, data);
  }
}

/** @throws LanguageError with the place in `text` */
export function compileTemplate(text: string): Template {
  return new Template(text, parseTemplate(text, MAIN, FUNCTION_NAMES));
}

/** Where a fault stands in the template: the line from 1, the column from 1 in characters. */
export function placeOf(
  text: string,
  { start }: LanguageError,
): { readonly line: number; readonly column: number } {
  const before = text.slice(0, start).split("\n");
  return { line: before.length, column: Array.from(before.at(-1) ?? "").length + 1 };
}
