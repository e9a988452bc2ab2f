/** YAML or JSON text -> its documents. A faulty document costs itself and no other. */
import { isNode, LineCounter, parseDocument, YAMLError } from "yaml";
import { cutList } from "./cut-list.ts";

export type DocumentPath = readonly (string | number)[];

export type ParsedDocument =
  | {
      readonly value: unknown;
      /** The line at which a part of the document begins, in the whole text, from 1. */
      lineOf(path: DocumentPath): number;
    }
  | { readonly line: number; readonly problem: string };

/** One piece of the text, and the line it begins at, from 1. */
interface Piece {
  readonly text: string;
  readonly line: number;
}

/** Parsing YAML takes five to ten seconds for this much, all at once: what is usual in a folder of manifests and as large is a List, which is cut. */
export const MAX_YAML_DOCUMENT = 8 * 1024 * 1024;

/** The default of the parser, named here because it stands between us and the "billion laughs". */
const MAX_ALIASES = 100;

/**
 * Yields document after document, so that a caller can let others run between two of them. Empty documents and such
 * that hold comments only are passed over. A large List of YAML is yielded as several Lists with a few items each.
 */
export function* parseDocuments(text: string): Generator<ParsedDocument> {
  for (const document of splitDocuments(text)) {
    const whole = parseJson(document);
    for (const piece of whole === undefined ? inPieces(document) : []) {
      const parsed = parseYaml(piece);
      if (isContent(parsed)) yield parsed;
    }
    if (whole !== undefined && isContent(whole)) yield whole;
  }
}

function isContent(parsed: ParsedDocument): boolean {
  return "problem" in parsed || (parsed.value !== null && parsed.value !== undefined);
}

/** Itself, unless it is a List that can be cut: what is around the items is in order, and so is in front of each piece. */
function* inPieces(document: Piece): Generator<Piece> {
  const list = cutList(document.text);
  if (list === undefined || "problem" in parseYaml({ text: list.frame.join("\n"), line: 1 })) {
    yield document;
    return;
  }
  for (const { lines, at } of list.pieces)
    yield { text: [...list.frame, ...lines].join("\n"), line: document.line + at - list.frame.length };
}

/**
 * Cuts at the lines that begin or end a document. Doing that before any parsing is what keeps a forgotten quote in one
 * document from swallowing the next; YAML allows no such line inside of a value (YAML 1.2.2 section 9.1.2).
 */
function* splitDocuments(text: string): Generator<Piece> {
  const lines = (text.startsWith("\uFEFF") ? text.slice(1) : text).split(/\r?\n/);
  let start = 0;
  for (let index = 1; index <= lines.length; index++) {
    const line = lines[index];
    if (line !== undefined && !MARKER.test(line)) continue;
    const piece = lines.slice(start, index);
    piece[0] = piece[0]?.replace(MARKER, "") ?? "";
    if (piece.some((each) => !NO_CONTENT.test(each))) yield { text: piece.join("\n"), line: start + 1 };
    start = index;
  }
}

const MARKER = /^(?:---|\.\.\.)(?:\s+|$)/;
/** An empty line, a comment, or a directive, which changes nothing for us. */
const NO_CONTENT = /^\s*(?:#.*|%.*)?$/;

/** JSON is YAML too, but is read a hundred times faster as what it is. Undefined if the piece is no JSON. */
function parseJson({ text, line }: Piece): ParsedDocument | undefined {
  if (!text.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return { value, lineOf: () => line };
  } catch {
    return undefined;
  }
}

function parseYaml({ text, line }: Piece): ParsedDocument {
  if (text.length > MAX_YAML_DOCUMENT) {
    const limit = MAX_YAML_DOCUMENT / (1024 * 1024);
    return { line, problem: `a YAML document of more than ${limit} MiB; split it, or write it as JSON` };
  }
  const lineCounter = new LineCounter();
  try {
    const document = parseDocument(text, {
      lineCounter,
      merge: true,
      prettyErrors: false,
      logLevel: "silent",
    });
    const error = document.errors[0];
    if (error !== undefined)
      return { line: lineAt(error.pos[0]), problem: `not valid YAML: ${error.message}` };
    return {
      value: document.toJS({ maxAliasCount: MAX_ALIASES }),
      lineOf(path) {
        const node = path.length === 0 ? document.contents : document.getIn(path, true);
        return lineAt(isNode(node) ? (node.range?.[0] ?? 0) : 0);
      },
    };
  } catch (error) {
    if (error instanceof YAMLError)
      return { line: lineAt(error.pos[0]), problem: `not valid YAML: ${error.message}` };
    // Too many aliases, or nesting deeper than the stack: the parser has no class of its own for these.
    if (error instanceof Error) return { line, problem: `not valid YAML: ${error.message}` };
    throw error;
  }

  function lineAt(offset: number): number {
    return line + lineCounter.linePos(offset).line - 1;
  }
}
