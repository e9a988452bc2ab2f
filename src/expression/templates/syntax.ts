/** A template as a tree. */
import type { Extent } from "../values/language-error.ts";
import type { ExpressionValue } from "../values/values.ts";

export type Statement = Extent &
  (
    | { readonly kind: "text"; readonly text: string }
    | { readonly kind: "action"; readonly pipe: Pipe }
    | {
        readonly kind: "if" | "with" | "range";
        readonly pipe: Pipe;
        readonly body: readonly Statement[];
        readonly otherwise: readonly Statement[] | undefined;
      }
    | { readonly kind: "template"; readonly name: string; readonly pipe: Pipe | undefined }
    | { readonly kind: "break" | "continue" }
  );

/** Commands, each of which receives the result of the previous one as its last argument. */
export interface Pipe extends Extent {
  /** Variables that receive the value, with their `$`. */
  readonly variables: readonly string[];
  /** `=` in place of `:=`: the variables exist already. */
  readonly isAssignment: boolean;
  readonly commands: readonly TemplateCommand[];
}

export interface TemplateCommand extends Extent {
  readonly operands: readonly Operand[];
}

export type Operand = Extent &
  (
    | { readonly kind: "dot" }
    | { readonly kind: "nil" }
    | { readonly kind: "constant"; readonly value: ExpressionValue; readonly tooLarge: boolean }
    | { readonly kind: "field"; readonly fields: readonly string[] }
    | { readonly kind: "variable"; readonly name: string; readonly fields: readonly string[] }
    | { readonly kind: "function"; readonly name: string }
    | { readonly kind: "pipe"; readonly pipe: Pipe }
    | { readonly kind: "chain"; readonly operand: Operand; readonly fields: readonly string[] }
  );
