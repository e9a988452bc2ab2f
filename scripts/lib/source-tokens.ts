/** A piece of TypeScript source that is neither space nor comment. */
export interface Token {
  readonly kind: "word" | "string" | "template" | "regex" | "punctuator";
  /** As written; of a template the part up to a substitution or the end. */
  readonly text: string;
  /** From 1. */
  readonly line: number;
  /** Whether a line begins between the token before and this one. */
  readonly startsLine: boolean;
  /** Whether a value may end here, so that a following `/` divides and a following `!` is an assertion. */
  readonly endsValue: boolean;
}

const SPACE = /\s+/y;
const COMMENT = /\/\/.*|\/\*[\s\S]*?\*\//y;
const WORD = /[\p{ID_Start}$_#@\d][\p{ID_Continue}$]*/uy;
const STRING = /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'/y;
const REGEX = /\/(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/\w*/y;
const PUNCTUATOR = /!==|!=|===|==|=>|\?\.(?!\d)|\?\?|\+\+|--|\.\.\.|[\s\S]/y;
/** Template text up to the first substitution or the end. */
const TEMPLATE_PART = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(?:`|\$\{)/y;

/** Words after which an operand follows. */
const OPERATOR_WORDS = new Set([
  "as",
  "asserts",
  "await",
  "case",
  "delete",
  "do",
  "else",
  "extends",
  "in",
  "instanceof",
  "is",
  "new",
  "of",
  "return",
  "satisfies",
  "throw",
  "typeof",
  "void",
  "yield",
]);

/**
 * Splits TypeScript source into tokens. Not a parser: it knows where comments, strings, templates and regular
 * expressions end, which is what a search for words in code needs. Source that is cut off gives the tokens up to there.
 */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  /** For each open brace, whether it belongs to a template. */
  const braces: boolean[] = [];
  let at = 0;
  let line = 1;
  let startsLine = true;

  const match = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(source) ?? undefined;
  };
  const advance = (text: string) => {
    at += text.length;
    const breaks = text.split("\n").length - 1;
    line += breaks;
    if (breaks > 0) startsLine = true;
  };
  const push = (kind: Token["kind"], text: string, endsValue: boolean) => {
    tokens.push({ kind, text, line, startsLine, endsValue });
    advance(text);
    startsLine = false;
  };
  const pushTemplatePart = () => {
    const part = match(TEMPLATE_PART)?.[0] ?? source.slice(at);
    // The source ends behind the opening mark.
    if (part === "") return;
    const isOpen = part.endsWith("${");
    if (isOpen) braces.push(true);
    push("template", part, !isOpen);
  };

  while (at < source.length) {
    const gap = match(SPACE) ?? match(COMMENT);
    if (gap !== undefined) {
      advance(gap[0]);
      continue;
    }
    const before = tokens.at(-1);
    const char = source[at];
    const string = match(STRING);
    const word = match(WORD);
    const regex = char === "/" && mayStartRegex(before, startsLine) ? match(REGEX) : undefined;
    if (string !== undefined) push("string", string[0], true);
    else if (word !== undefined) push("word", word[0], wordEndsValue(word[0], before));
    else if (regex !== undefined) push("regex", regex[0], true);
    else if (char === "`") {
      advance("`");
      pushTemplatePart();
    } else if (char === "}" && braces.pop() === true) {
      advance("}");
      pushTemplatePart();
    } else {
      const text = match(PUNCTUATOR)?.[0] ?? source.slice(at);
      if (text === "{") braces.push(false);
      push("punctuator", text, punctuatorEndsValue(text, before, startsLine));
    }
  }
  return tokens;
}

function mayStartRegex(before: Token | undefined, startsLine: boolean): boolean {
  return before === undefined || !before.endsValue || (before.text === "}" && startsLine);
}

function wordEndsValue(text: string, before: Token | undefined): boolean {
  const isProperty = before?.text === "." || before?.text === "?.";
  return isProperty || !OPERATOR_WORDS.has(text);
}

function punctuatorEndsValue(text: string, before: Token | undefined, startsLine: boolean): boolean {
  if (text === "!" || text === "++" || text === "--") return before?.endsValue === true && !startsLine;
  return text === ")" || text === "]" || text === "}";
}
