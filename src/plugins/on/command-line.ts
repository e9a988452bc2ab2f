import { type Argument, INVALID } from "../../plugin/config/arguments.ts";

export interface HookCommand {
  readonly file: string;
  readonly args: readonly string[];
  /** Whether the server does not wait for its end. */
  readonly background: boolean;
}

/** `COMMAND [ARGS...] [&]`: the rest of the line, split into words as by a shell. */
export function commandLine(): Argument<HookCommand> {
  return {
    read(cursor, label) {
      const first = cursor.take();
      if (first === undefined) return cursor.missing(label, "a command");
      const texts = [first.text];
      for (let token = cursor.take(); token !== undefined; token = cursor.take()) texts.push(token.text);
      const line = texts.join(" ");
      const words = splitCommandLine(line);
      const { report } = cursor.context;
      if (words === undefined) {
        report.error("ON_UNTERMINATED_QUOTE", first.span, `unterminated quote in the command: ${line}`, {
          expected: "each ' and \" in pairs, or escaped with a backslash",
        });
        return INVALID;
      }
      const background = words.at(-1) === "&";
      const [file, ...args] = background ? words.slice(0, -1) : words;
      if (file === undefined || file === "") {
        report.error("ON_NO_COMMAND", first.span, `no command contained in '${line}'`);
        return INVALID;
      }
      return { file, args, background };
    },
    usage: (label) => `${label} [ARGS...] [&]`,
  };
}

/**
 * Splits a line into words as a POSIX shell does: single quotes preserve everything, in double quotes and outside a
 * backslash escapes the next character, a `#` at the start of a word begins a comment. Nothing is expanded. @returns
 * `undefined` for an unterminated quote
 */
export function splitCommandLine(line: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let index = 0; index < line.length; index++) {
    const character = line.charAt(index);
    if (character === "\\" && quote !== "'") {
      index++;
      if (index === line.length && quote !== "") return undefined;
      word = (word ?? "") + line.charAt(index);
    } else if (quote !== "") {
      if (character === quote) quote = "";
      else word = (word ?? "") + character;
    } else if (character === "'" || character === '"') {
      quote = character;
      word ??= "";
    } else if (/\s/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === "#" && word === undefined) {
      break;
    } else {
      word = (word ?? "") + character;
    }
  }
  if (quote !== "") return undefined;
  return word === undefined ? words : [...words, word];
}
