/**
 * Turns `servers` in a Helm chart's values, or the DNS object of OpenShift, into a Corefile, and maps its lines back to those of the
 * YAML.
 */
import { isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments, type Scalar } from "yaml";
import type { Diagnostic, Span } from "../../corefile/diagnostic.ts";
import { fromHelmValues, HelmValuesError } from "../../predecessors/migrate/from-helm-values.ts";
import { isOpenShiftDns, valuesOfOpenShiftDns } from "../../predecessors/migrate/from-openshift-dns.ts";
import type { CorefileSource } from "../../server/configuration/configuration.ts";

export interface TranslatedCorefile {
  /** Named after the file that holds the values. */
  readonly source: CorefileSource;
  /** Turns a finding in the Corefile into one in the values. */
  readonly relocate: (diagnostic: Diagnostic) => Diagnostic;
}

/** A word of a value and its place: in the Corefile by offset, in the values by line and column. */
interface Piece {
  readonly start: number;
  readonly end: number;
  readonly line: number;
  readonly column: number;
}

/**
 * Reads a document with `servers`, or with the values of a release in a cluster: `spec.values` of a HelmRelease (Flux),
 * `spec.valuesContent` of a HelmChartConfig (k3s, RKE2), `spec` of `dns.operator.openshift.io`.
 * @returns `undefined` for text that is not YAML with a list `servers`
 * @throws HelmValuesError
 */
export function corefileInHelmValues(source: CorefileSource): TranslatedCorefile | undefined {
  const lines = new LineCounter();
  for (const document of parseAllDocuments(source.text, { lineCounter: lines })) {
    if (!("contents" in document) || document.errors.length > 0 || !isMap(document.contents)) continue;
    const { contents } = document;
    const object: unknown = contents.toJS(document);
    if (isOpenShiftDns(object)) {
      const spec = contents.get("spec", true);
      const words = isMap(spec) ? wordsOfDns(spec, source.text) : [];
      return translated(words, () => valuesOfOpenShiftDns(object), source, lines);
    }
    const content = contents.getIn(["spec", "valuesContent"], true);
    if (isScalar(content) && typeof content.value === "string") {
      const within = corefileInHelmValues(contentInPlace(content, content.value, source));
      if (within !== undefined) return within;
    }
    for (const values of [contents, contents.getIn(["spec", "values"], true)]) {
      if (isMap(values) && isSeq(values.get("servers", true)))
        return translated(wordsOf(values, source.text), () => values.toJS(document), source, lines);
    }
  }
  return undefined;
}

/** A quoted string has no lines of its own in the file, so it is named as a separate file. */
function contentInPlace(
  { range, type }: Scalar,
  value: string,
  { text, file }: CorefileSource,
): CorefileSource {
  if (type !== "BLOCK_LITERAL") return { text: value, file: `${file} (valuesContent)` };
  const [start, end] = range ?? [0, 0];
  const before = text.slice(0, start).replaceAll(/[^\n]+/g, "");
  return { text: `${before}${text.slice(text.indexOf("\n", start), end)}`, file };
}

/** @param values made only here, so that what is wrong with them is reported with the name of the file */
function translated(
  words: Iterable<Word>,
  values: () => unknown,
  source: CorefileSource,
  lines: LineCounter,
): TranslatedCorefile {
  const text = corefileOf(values, source.file);
  const pieces: Piece[] = [];
  let offset = 0;
  // The Corefile has the words of the values in the order of `wordsOf`, so each search starts behind the previous match.
  for (const { word, start } of words) {
    const found = text.indexOf(word, offset);
    if (found === -1) continue;
    offset = found + word.length;
    const { line, col } = lines.linePos(start);
    pieces.push({ start: found, end: offset, line, column: col });
  }
  const corefile = { ...source, text };
  return { source: corefile, relocate: (diagnostic) => relocated(diagnostic, corefile, pieces) };
}

function corefileOf(values: () => unknown, file: string): string {
  try {
    return fromHelmValues(values());
  } catch (error) {
    if (error instanceof HelmValuesError) throw new HelmValuesError(`${file}: ${error.message}`);
    throw error;
  }
}

interface Word {
  readonly word: string;
  /** Offset in the values. */
  readonly start: number;
}

function* wordsOf(values: Node, yaml: string): Generator<Word> {
  yield* members(values, "extraConfig", function* (extra) {
    if (!isMap(extra)) return;
    for (const { key, value } of extra.items) {
      if (isScalar(key)) yield* linesOf(key, yaml);
      if (isMap(value)) yield* scalar(value, "parameters", yaml);
    }
  });
  yield* members(values, "servers", function* (servers) {
    for (const server of itemsOf(servers)) {
      for (const zone of itemsOf(member(server, "zones"))) {
        for (const name of ["scheme", "zone"]) yield* scalar(zone, name, yaml);
        yield* scalar(server, "port", yaml);
      }
      for (const plugin of itemsOf(member(server, "plugins")))
        for (const name of ["name", "parameters", "configBlock"]) yield* scalar(plugin, name, yaml);
    }
  });
}

/** Words of the DNS object of OpenShift, in the order of the Corefile. */
function* wordsOfDns(spec: Node, yaml: string): Generator<Word> {
  for (const server of itemsOf(member(spec, "servers"))) {
    yield* scalarsOf(member(server, "zones"), yaml);
    const plugin = member(server, "forwardPlugin");
    if (plugin !== undefined) yield* scalarsOf(member(plugin, "upstreams"), yaml);
  }
  const resolvers = member(spec, "upstreamResolvers");
  if (resolvers === undefined) return;
  for (const upstream of itemsOf(member(resolvers, "upstreams"))) yield* scalar(upstream, "address", yaml);
}

function* scalarsOf(list: Node | undefined, yaml: string): Generator<Word> {
  if (!isSeq(list)) return;
  for (const item of list.items) if (isScalar(item)) yield* linesOf(item, yaml);
}

function* members(node: Node, name: string, words: (value: Node) => Generator<Word>): Generator<Word> {
  const value = member(node, name);
  if (value !== undefined) yield* words(value);
}

function member(node: Node, name: string): Node | undefined {
  const value = isMap(node) ? node.get(name, true) : undefined;
  return isScalar(value) || isMap(value) || isSeq(value) ? value : undefined;
}

function itemsOf(node: Node | undefined): Node[] {
  return isSeq(node) ? node.items.filter((item): item is Node => isMap(item)) : [];
}

function* scalar(node: Node, name: string, yaml: string): Generator<Word> {
  const value = member(node, name);
  if (isScalar(value)) yield* linesOf(value, yaml);
}

/** Line by line, because the Corefile changes the indentation. */
function* linesOf({ value, range }: Scalar, yaml: string): Generator<Word> {
  let [start, end] = range ?? [0, 0];
  for (const line of String(value).split("\n")) {
    const word = line.trim();
    if (word === "") continue;
    // Folded or escaped YAML only has the place of its beginning.
    const found = yaml.slice(start, end).indexOf(word);
    yield { word, start: found === -1 ? start : start + found };
    if (found !== -1) start += found + word.length;
  }
}

function relocated(
  diagnostic: Diagnostic,
  { text, file }: CorefileSource,
  pieces: readonly Piece[],
): Diagnostic {
  const place = (line: number, column: number): Piece | undefined => {
    const offset = offsetOf(text, line, column);
    const piece = pieces.findLast(({ start }) => start <= offset) ?? pieces[0];
    if (piece === undefined) return undefined;
    const within = Math.max(0, Math.min(offset, piece.end) - piece.start);
    return { ...piece, column: piece.column + within, start: offset };
  };
  const move = (span: Span): Span => {
    const piece = span.file === file ? place(span.line, span.column) : undefined;
    const importedAt = span.importedAt && { importedAt: move(span.importedAt) };
    if (piece === undefined) return { ...span, ...importedAt };
    const length = Math.max(1, Math.min(span.length, piece.end - piece.start));
    return { ...span, line: piece.line, column: piece.column, length, ...importedAt };
  };
  // Messages name other places by file. This name is unique to the text, so it can be replaced.
  const say = (words: string): string =>
    words
      .split(`${file}:`)
      .map((part, index) => (index === 0 ? part : part.replace(/^(\d+):(\d+)/, placeInValues)))
      .join(`${file}:`);
  const placeInValues = (same: string, line: string, column: string): string => {
    const piece = place(Number(line), Number(column));
    return piece === undefined ? same : `${piece.line}:${piece.column}`;
  };
  return {
    ...diagnostic,
    span: move(diagnostic.span),
    message: say(diagnostic.message),
    ...(diagnostic.notes && { notes: diagnostic.notes.map(say) }),
  };
}

/** @param line from 1, as is `column` */
function offsetOf(text: string, line: number, column: number): number {
  let offset = 0;
  for (let passed = 1; passed < line; passed++) offset = text.indexOf("\n", offset) + 1;
  return offset + column - 1;
}
