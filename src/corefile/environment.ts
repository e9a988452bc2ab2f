/** References to the environment inside a word: `{$NAME}` and `{%NAME%}` (docs/spec/coredns-behaviour.md#grammar). */

export interface Substitution {
  readonly text: string;
  /** Names of the variables that are not set and so count as empty. */
  readonly unset: readonly string[];
  /** Whether references were left in place because their values refer to variables without end. */
  readonly endless: boolean;
}

/**
 * Fills in the values of environment variables; `undefined` if the text has no reference.
 * First all `{%NAME%}`, then all `{$NAME}`. References within a value are filled in, too. A reference without a name stays as it
 * is. There is no syntax for a default.
 */
export function substituteEnvironment(
  text: string,
  variable: (name: string) => string | undefined,
): Substitution | undefined {
  if (!text.includes("{$") && !text.includes("{%")) return undefined;
  const state: State = { variable, unset: [], replaced: 0, endless: false };
  const percent = replaceReferences(text, "{%", "%}", state);
  const dollar = replaceReferences(percent, "{$", "}", state);
  if (state.replaced === 0) return undefined;
  return { text: dollar, unset: state.unset, endless: state.endless };
}

const MAX_REPLACEMENTS = 100;
const MAX_LENGTH = 64 * 1024;

interface State {
  readonly variable: (name: string) => string | undefined;
  readonly unset: string[];
  replaced: number;
  endless: boolean;
}

function replaceReferences(text: string, opening: string, closing: string, state: State): string {
  let from = 0;
  while (!state.endless) {
    const start = text.indexOf(opening, from);
    if (start === -1) break;
    const end = text.indexOf(closing, start);
    if (end === -1) break;
    const name = text.slice(start + opening.length, end);
    if (name === "") {
      from = start + opening.length;
      continue;
    }
    if (state.replaced === MAX_REPLACEMENTS || text.length > MAX_LENGTH) {
      state.endless = true;
      break;
    }
    const value = state.variable(name);
    if (value === undefined && !state.unset.includes(name)) state.unset.push(name);
    text = text.slice(0, start) + (value ?? "") + text.slice(end + closing.length);
    // The value may contain references, so the search continues at its start.
    from = start;
    state.replaced++;
  }
  return text;
}
