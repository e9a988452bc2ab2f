/** The texts in an editor in front of the files on disk. */

import { normalize } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { TextDocument } from "vscode-languageserver-textdocument";
import type { CorefileHost } from "../../corefile/host.ts";

/** The path of a document; `undefined` for a text that has none, such as a new one. */
export function pathOf(uri: string): string | undefined {
  if (!uri.startsWith("file:")) return undefined;
  try {
    return fileURLToPath(uri);
  } catch {
    // A file of another machine, or a path with a zero byte.
    return undefined;
  }
}

export function uriOf(path: string): string {
  return pathToFileURL(path).href;
}

/** The name of a document in places. */
export function nameOf(document: TextDocument): string {
  return pathOf(document.uri) ?? document.uri;
}

/** Files are read as they stand in the editor, whether saved or not. */
export function bufferHost(host: CorefileHost, open: () => readonly TextDocument[]): CorefileHost {
  return {
    ...host,
    readFile(path) {
      const wanted = normalize(path);
      const document = open().find(({ uri }) => pathOf(uri) === wanted);
      return document === undefined ? host.readFile(path) : { kind: "text", text: document.getText() };
    },
  };
}
