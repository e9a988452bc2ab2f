/** Go's template language, as far as records need it: compiled once at setup, run for each query. */
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
   * The constant text after a field at the start of the template.
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
   * Renders the template with `data`. The work is limited, whatever the template.
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

/** Place of a fault in the template: the line from 1, the column from 1 in characters. */
export function placeOf(
  text: string,
  { start }: LanguageError,
): { readonly line: number; readonly column: number } {
  const before = text.slice(0, start).split("\n");
  return { line: before.length, column: Array.from(before.at(-1) ?? "").length + 1 };
}
