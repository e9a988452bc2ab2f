/** An expression as a tree. */
import type { Extent } from "../values/language-error.ts";
import type { ExpressionValue } from "../values/values.ts";

export type Node = Extent &
  (
    | { readonly kind: "literal"; readonly value: ExpressionValue }
    | { readonly kind: "name"; readonly name: string }
    | { readonly kind: "let"; readonly name: string; readonly value: Node; readonly body: Node }
    | { readonly kind: "sequence"; readonly items: readonly Node[] }
    | { readonly kind: "condition"; readonly test: Node; readonly yes: Node; readonly no: Node }
    | { readonly kind: "unary"; readonly operator: string; readonly operand: Node }
    | { readonly kind: "binary"; readonly operator: string; readonly left: Node; readonly right: Node }
    | MemberNode
    | { readonly kind: "chain"; readonly body: Node }
    | {
        readonly kind: "slice";
        readonly object: Node;
        readonly from: Node | undefined;
        readonly to: Node | undefined;
      }
    | CallNode
    | { readonly kind: "method"; readonly object: MemberNode; readonly args: readonly Node[] }
    | { readonly kind: "array"; readonly items: readonly Node[] }
    | { readonly kind: "map"; readonly entries: readonly (readonly [key: Node, value: Node])[] }
    | { readonly kind: "predicate"; readonly body: Node }
    | { readonly kind: "pointer"; readonly pointer: "element" | "index" | "accumulator" }
  );

export type MemberNode = Extent & {
  readonly kind: "member";
  readonly object: Node;
  readonly property: Node;
  /** `?.`: nil has no members, and the rest of the chain is skipped. */
  readonly isOptional: boolean;
};

export type CallNode = Extent & {
  readonly kind: "call";
  readonly name: string;
  readonly nameExtent: Extent;
  readonly args: readonly Node[];
  /** Written as `::name()`: the built-in function, even if the name is redefined. */
  readonly isBuiltin: boolean;
};
