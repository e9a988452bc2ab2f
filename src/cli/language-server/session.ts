/** One session with an editor: its open documents, and its requests. */

import {
  type Connection,
  createConnection,
  type InitializeResult,
  TextDocumentSyncKind,
  TextDocuments,
} from "vscode-languageserver/node";
import { TextDocument } from "vscode-languageserver-textdocument";
import { formatCorefile } from "../../corefile/format.ts";
import { syntaxErrors } from "../../corefile/syntax-errors.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { version } from "../../lib/text/version.ts";
import { isPlainCorefile } from "../check/given-files.ts";
import { bufferHost, pathOf } from "./buffers.ts";
import { completionsAt, documentationOf } from "./completion.ts";
import { definitionsAt } from "./definition.ts";
import type { EditorOptions } from "./editor-options.ts";
import { findings } from "./findings.ts";
import { hoverAt } from "./hover.ts";

/** Milliseconds without a change before the documents are checked. */
const PAUSE = 100;

const CAPABILITIES: InitializeResult = {
  capabilities: {
    textDocumentSync: TextDocumentSyncKind.Incremental,
    completionProvider: { resolveProvider: true, triggerCharacters: [" "] },
    hoverProvider: true,
    definitionProvider: true,
    documentFormattingProvider: true,
  },
  serverInfo: { name: "portolan", version },
};

/** Serves until the editor ends the process. */
export function serveEditor(
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  options: EditorOptions,
): Promise<never> {
  const connection = createConnection(input, output);
  const documents = new TextDocuments(TextDocument);
  const host = bufferHost(options.host, () => documents.all());
  const checking = new Checking(connection, documents, { ...options, host });

  connection.onInitialize(() => CAPABILITIES);
  documents.onDidChangeContent(() => checking.request());
  documents.onDidClose(({ document }) => checking.forget(document));
  // A file that a Corefile imports or names may have changed on disk.
  documents.onDidSave(() => checking.request());

  const documentOf = (uri: string): TextDocument => {
    const document = documents.get(uri);
    if (document === undefined) throw new RangeError(`${uri} is not open`);
    return document;
  };
  connection.onCompletion(async ({ textDocument, position }) => {
    const document = documentOf(textDocument.uri);
    const registry = await options.registryFor(pathOf(document.uri));
    return completionsAt(document, document.offsetAt(position), registry, host);
  });
  connection.onCompletionResolve((item) => ({ ...item, ...documentationOf(item) }));
  connection.onHover(async ({ textDocument, position }) => {
    const document = documentOf(textDocument.uri);
    const registry = await options.registryFor(pathOf(document.uri));
    return hoverAt(document, document.offsetAt(position), registry, host);
  });
  connection.onDefinition(({ textDocument, position }) => {
    const document = documentOf(textDocument.uri);
    return definitionsAt(document, document.offsetAt(position), host);
  });
  connection.onDocumentFormatting(async ({ textDocument }) => {
    const document = documentOf(textDocument.uri);
    const text = document.getText();
    const file = pathOf(document.uri) ?? document.uri;
    // A text with errors keeps its layout, and the errors are shown anyway.
    if (syntaxErrors(text, file).length > 0 || !(await isPlainCorefile({ text, file }))) return [];
    const formatted = formatCorefile(text);
    if (formatted === text) return [];
    const range = { start: document.positionAt(0), end: document.positionAt(text.length) };
    return [{ range, newText: formatted }];
  });
  documents.listen(connection);
  connection.listen();
  // The library ends the process at the editor's request, or when its input ends.
  return new Promise<never>(() => undefined);
}

/** Checks all open documents after each change: one may import another. */
class Checking {
  readonly #connection: Connection;
  readonly #documents: TextDocuments<TextDocument>;
  readonly #options: EditorOptions;
  #timer: NodeJS.Timeout | undefined;
  #isRunning = false;
  #isDue = false;

  constructor(connection: Connection, documents: TextDocuments<TextDocument>, options: EditorOptions) {
    this.#connection = connection;
    this.#documents = documents;
    this.#options = options;
  }

  request(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#run(), PAUSE);
  }

  forget(document: TextDocument): void {
    void this.#connection.sendDiagnostics({ uri: document.uri, diagnostics: [] });
    this.request();
  }

  async #run(): Promise<void> {
    this.#isDue = true;
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      while (this.#isDue) {
        this.#isDue = false;
        for (const document of this.#documents.all()) await this.#check(document);
      }
    } finally {
      this.#isRunning = false;
    }
  }

  async #check({ uri }: TextDocument): Promise<void> {
    const document = this.#documents.get(uri);
    if (document === undefined) return;
    const { version: checked } = document;
    try {
      const diagnostics = await findings(document, this.#options);
      // The editor went on meanwhile: the next round reports the new text.
      if (this.#documents.get(uri)?.version !== checked) return;
      await this.#connection.sendDiagnostics({ uri, version: checked, diagnostics });
    } catch (error) {
      this.#connection.console.error(`cannot check ${uri}: ${messageOf(error)}`);
    }
  }
}
