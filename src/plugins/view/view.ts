import type { Expression } from "../../expression/expression.ts";
import { LanguageError } from "../../expression/values/language-error.ts";
import type { PluginInstance, Query } from "../../plugin/index.ts";

/** A filter for queries for which all expressions are true; the view's name is set in metrics and metadata. */
export function makeView(name: string, expressions: readonly Expression<Query>[]): PluginInstance {
  return {
    accepts(query) {
      const refusing = firstRefusing(expressions, query);
      // Internal lookups count, too: they may lead to another block than the client's query.
      if (refusing === undefined) query.view = name;
      else if (query.view === name) query.view = "";
      if (query.trace !== undefined) explain(name, expressions, refusing, query);
      return refusing === undefined;
    },
    // Set before the filter runs, so that an expression can read it, as in CoreDNS.
    provideMetadata: (query) => query.setMetadata("view/name", name),
  };
}

/** A loop and no `find`, because every query of the zone passes here. */
function firstRefusing(
  expressions: readonly Expression<Query>[],
  query: Query,
): Expression<Query> | undefined {
  for (const expression of expressions) if (!holds(expression, query)) return expression;
  return undefined;
}

/** Any other result than true means no, including faults. */
function holds(expression: Expression<Query>, query: Query): boolean {
  try {
    return expression.evaluate(query) === true;
  } catch (error) {
    if (error instanceof LanguageError) return false;
    throw error;
  }
}

/**
 * Notes the first expression that is not true, with the value of each part of it; for a view that accepts the query,
 * notes all.
 */
function explain(
  name: string,
  expressions: readonly Expression<Query>[],
  refusing: Expression<Query> | undefined,
  query: Query,
): void {
  const { trace } = query;
  if (trace === undefined) return;
  trace.enter("view", query);
  if (expressions.length === 0) trace.note(`view "${name}" has no expression, so it takes every query`);
  for (const expression of refusing === undefined ? expressions : [refusing]) {
    const parts = expression.explain(query);
    const verdict = refusing === undefined ? "takes it" : "does not take it";
    const values = parts.map(({ text, value }) => `${text} is ${value}`).join(", ");
    const facts = { view: name, expression: expression.text, parts };
    trace.note(`view "${name}" ${verdict}: ${values}`, facts);
  }
  trace.leave("view", refusing === undefined ? "accepts" : "declines");
}
