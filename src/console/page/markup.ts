/** Renders components as text: for the server, which has no document. They may use neither hooks nor signals. */
import type { ComponentChild, ComponentChildren, VNode } from "preact";

/** Elements without an end tag (HTML standard, section 13.1.2). */
const VOID = new Set(["br", "hr", "img", "input", "link", "meta", "wbr"]);

export function markupOf(children: ComponentChildren): string {
  if (Array.isArray(children)) return children.map(markupOf).join("");
  if (typeof children !== "object" || children === null)
    return typeof children === "string" || typeof children === "number" ? escaped(`${children}`) : "";
  return isVNode(children) ? elementOf(children) : "";
}

function isVNode(child: ComponentChild): child is VNode<Record<string, unknown>> {
  return typeof child === "object" && child !== null && "type" in child;
}

function elementOf({ type, props }: VNode<Record<string, unknown>>): string {
  if (typeof type !== "string") {
    // Class components would need an instance; there are only functions.
    const draw = type as (props: object) => ComponentChildren;
    return markupOf(draw(props));
  }
  const attributes = Object.entries(props).map(([name, value]) => attributeOf(name, value));
  const start = `<${type}${attributes.join("")}>`;
  return VOID.has(type) ? start : `${start}${markupOf(props.children)}</${type}>`;
}

function attributeOf(name: string, value: unknown): string {
  if (name === "children" || value === undefined || value === null || value === false) return "";
  if (value === true) return ` ${name}`;
  return typeof value === "string" || typeof value === "number" ? ` ${name}="${escaped(`${value}`)}"` : "";
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
