/** What `portolan check` finds in a document, as an editor shows it. */
import { dirname, join, normalize } from "node:path";
import {
  DiagnosticSeverity,
  type Diagnostic as EditorDiagnostic,
  type Range,
} from "vscode-languageserver/node";
import type { TextDocument } from "vscode-languageserver-textdocument";
import type { Diagnostic, Span } from "../../corefile/diagnostic.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { checkFiles } from "../check/check-files.ts";
import { remedies } from "../check/checked-file.ts";
import { type GivenFile, givenFile } from "../check/given-files.ts";
import { nameOf, pathOf, uriOf } from "./buffers.ts";
import type { EditorOptions } from "./editor-options.ts";

export async function findings(document: TextDocument, options: EditorOptions): Promise<EditorDiagnostic[]> {
  const file = nameOf(document);
  const importer = importerOf(document, options);
  let given: GivenFile;
  try {
    given = await givenFile(importer ?? { text: document.getText(), file });
  } catch (error) {
    // YAML that cannot be read, or that holds no Corefile.
    if (!(error instanceof Error && /^(NoCorefileInYaml|HelmValuesError)$/.test(error.name))) throw error;
    return [
      {
        severity: DiagnosticSeverity.Error,
        source: "portolan",
        message: messageOf(error),
        range: rangeOf(undefined),
      },
    ];
  }
  const [checked] = await checkFiles([given], options);
  if (checked === undefined) return [];
  return checked.diagnostics.flatMap((diagnostic) => {
    const { inDocument = (span: Span) => span } = checked;
    const shown = placeIn(file, inDocument(diagnostic.span));
    if (shown === undefined) return [];
    return [inEditor(diagnostic, shown, file)];
  });
}

/**
 * The Corefile that imports the document, in its folder or the folder above: a part of a Corefile is only right or wrong there.
 */
function importerOf(
  document: TextDocument,
  { host }: EditorOptions,
): { text: string; file: string } | undefined {
  const path = pathOf(document.uri);
  if (path === undefined) return undefined;
  for (const folder of [dirname(path), dirname(dirname(path))]) {
    const file = join(folder, "Corefile");
    if (file === path) return undefined;
    const content = host.readFile(file);
    if (content.kind !== "text") continue;
    const { corefile } = parseCorefile(content.text, { file, host });
    if (corefile.files.some((each) => normalize(each) === path)) return { text: content.text, file };
  }
  return undefined;
}

/** The place in the file itself: for an imported text, where it is imported. */
function placeIn(file: string, span: Span): Span | undefined {
  for (let place: Span | undefined = span; place !== undefined; place = place.importedAt)
    if (normalize(place.file) === normalize(file)) return place;
  return undefined;
}

function inEditor(diagnostic: Diagnostic, shown: Span, file: string): EditorDiagnostic {
  const { span, severity, code, message } = diagnostic;
  const isElsewhere = normalize(span.file) !== normalize(file);
  return {
    severity: severity === "error" ? DiagnosticSeverity.Error : DiagnosticSeverity.Warning,
    code,
    source: "portolan",
    message: [message, ...remedies(diagnostic)].join("\n"),
    range: rangeOf(shown),
    ...(isElsewhere && {
      relatedInformation: [{ message, location: { uri: uriOf(span.file), range: rangeOf(span) } }],
    }),
  };
}

/** A span does not go over the end of its line: a quoted word of several lines is marked at its beginning. */
export function rangeOf(span: Span | undefined): Range {
  const { line, column, length } = span ?? { line: 1, column: 1, length: 1 };
  const start = { line: line - 1, character: column - 1 };
  return { start, end: { line: start.line, character: start.character + length } };
}
