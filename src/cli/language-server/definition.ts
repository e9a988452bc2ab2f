/** Where a snippet is declared, and which files an import reads. */
import { dirname, isAbsolute, join } from "node:path";
import type { Location } from "vscode-languageserver/node";
import type { TextDocument } from "vscode-languageserver-textdocument";
import type { CorefileHost } from "../../corefile/host.ts";
import { snippetName } from "../../corefile/importer.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import { nameOf, uriOf } from "./buffers.ts";
import { cursorPlace, snippetsOf } from "./cursor.ts";
import { rangeOf } from "./findings.ts";

export function definitionsAt(document: TextDocument, offset: number, host: CorefileHost): Location[] {
  const text = document.getText();
  const place = cursorPlace(text, Math.min(offset + 1, text.length));
  if (place?.word === undefined) return [];
  const file = nameOf(document);
  const { word, before } = place;
  const own = snippetName(word.text);
  if (own !== undefined && before.length === 0) return snippetLocations(own, document, host);
  if (before.length !== 1 || before[0]?.text !== "import") return [];
  const found = snippetLocations(word.text, document, host);
  if (found.length > 0) return found;
  // The reader itself finds the files of the pattern.
  const path = isAbsolute(word.text) ? word.text : join(dirname(file), word.text);
  const { corefile } = parseCorefile(`import "${path.replaceAll('"', '\\"')}"`, {
    file,
    host: withoutNested(host),
  });
  return corefile.files
    .filter((each) => each !== file)
    .map((each) => ({ uri: uriOf(each), range: { start: START, end: START } }));
}

const START = { line: 0, character: 0 };

/** Files within the imported files are not asked for. */
function withoutNested(host: CorefileHost): CorefileHost {
  return {
    ...host,
    readFile(path) {
      const content = host.readFile(path);
      return content.kind === "text" ? { ...content, text: "" } : content;
    },
  };
}

/** In the text itself, or in a file that it imports. */
function snippetLocations(name: string, document: TextDocument, host: CorefileHost): Location[] {
  const file = nameOf(document);
  const here = snippetsOf(document.getText(), file).find((snippet) => snippet.name === name);
  if (here !== undefined) return [{ uri: document.uri, range: rangeOf(here.heading.span) }];
  const { corefile } = parseCorefile(document.getText(), { file, host });
  for (const imported of corefile.files.filter((each) => each !== file)) {
    const content = host.readFile(imported);
    if (content.kind !== "text") continue;
    const there = snippetsOf(content.text, imported).find((snippet) => snippet.name === name);
    if (there !== undefined) return [{ uri: uriOf(imported), range: rangeOf(there.heading.span) }];
  }
  return [];
}
