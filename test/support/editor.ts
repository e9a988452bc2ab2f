/** An editor without a window: a client of the language server, as a process that it starts. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  type CompletionItem,
  CompletionRequest,
  CompletionResolveRequest,
  createProtocolConnection,
  DefinitionRequest,
  type Diagnostic,
  DidChangeTextDocumentNotification,
  DidCloseTextDocumentNotification,
  DidOpenTextDocumentNotification,
  DocumentFormattingRequest,
  ExitNotification,
  HoverRequest,
  InitializedNotification,
  InitializeRequest,
  type InitializeResult,
  type Location,
  MarkupContent,
  type Position,
  type ProtocolConnection,
  PublishDiagnosticsNotification,
  type PublishDiagnosticsParams,
  ShutdownRequest,
  StreamMessageReader,
  StreamMessageWriter,
  type TextEdit,
} from "vscode-languageserver-protocol/node";
import { projectRoot } from "./portolan.ts";

const launcher = join(projectRoot, "bin", "portolan");

export interface Shown {
  readonly uri: string;
  readonly version: number;
  readonly text: string;
}

export class Editor implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #connection: ProtocolConnection;
  readonly #folder: string;
  readonly #documents = new Map<string, Shown>();
  readonly #published: PublishDiagnosticsParams[] = [];
  #waiting: (() => void)[] = [];
  #greeting: InitializeResult | undefined;

  private constructor(folder: string, args: readonly string[]) {
    this.#folder = folder;
    this.#child = spawn(process.execPath, [launcher, "language-server", ...args], {
      cwd: folder,
      stdio: ["pipe", "pipe", "inherit"],
    });
    const { stdin, stdout } = this.#child;
    if (stdin === null || stdout === null) throw new Error("the language server has no pipes");
    stdin.on("error", () => undefined);
    this.#connection = createProtocolConnection(
      new StreamMessageReader(stdout),
      new StreamMessageWriter(stdin),
    );
    this.#connection.onNotification(PublishDiagnosticsNotification.type, (params) => {
      this.#published.push(params);
      for (const resume of this.#waiting.splice(0)) resume();
    });
    this.#connection.listen();
  }

  /** @param folder of the files that it opens */
  static async start(folder: string, args: readonly string[] = ["--stdio"]): Promise<Editor> {
    const editor = new Editor(folder, args);
    editor.#greeting = await editor.#connection.sendRequest(InitializeRequest.type, {
      processId: process.pid,
      rootUri: pathToFileURL(folder).href,
      capabilities: {},
    });
    await editor.#connection.sendNotification(InitializedNotification.type, {});
    return editor;
  }

  get greeting(): InitializeResult | undefined {
    return this.#greeting;
  }

  uri(name: string): string {
    return pathToFileURL(join(this.#folder, name)).href;
  }

  /** Opens a file with its text on disk, or with another one that is not saved. */
  async open(name: string, text = readFileSync(join(this.#folder, name), "utf8")): Promise<void> {
    const uri = this.uri(name);
    this.#documents.set(name, { uri, version: 1, text });
    await this.#connection.sendNotification(DidOpenTextDocumentNotification.type, {
      textDocument: { uri, languageId: "corefile", version: 1, text },
    });
  }

  /** Types over the first occurrence of `what`, without saving. */
  async type(name: string, what: string, replacement: string): Promise<void> {
    const { uri, version, text } = this.#document(name);
    const start = text.indexOf(what);
    if (start === -1) throw new Error(`${name} has no ${JSON.stringify(what)}`);
    const next = { uri, version: version + 1, text: text.replace(what, () => replacement) };
    const range = { start: positionOf(text, start), end: positionOf(text, start + what.length) };
    this.#documents.set(name, next);
    await this.#connection.sendNotification(DidChangeTextDocumentNotification.type, {
      textDocument: { uri, version: next.version },
      contentChanges: [{ range, text: replacement }],
    });
  }

  async close(name: string): Promise<void> {
    const { uri } = this.#document(name);
    this.#documents.delete(name);
    await this.#connection.sendNotification(DidCloseTextDocumentNotification.type, { textDocument: { uri } });
  }

  /** The findings in the text as it is now, once they satisfy the test. */
  async findings(
    name: string,
    fits: (found: readonly Diagnostic[]) => boolean = () => true,
  ): Promise<readonly Diagnostic[]> {
    const { uri, version } = this.#document(name);
    for (;;) {
      const last = this.#published.findLast((each) => each.uri === uri && each.version === version);
      if (last !== undefined && fits(last.diagnostics)) return last.diagnostics;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** What completion offers at the bar in `text`, which replaces the document's. */
  async complete(name: string, text: string): Promise<CompletionItem[]> {
    const position = await this.#show(name, text);
    const found = await this.#connection.sendRequest(CompletionRequest.type, this.#at(name, position));
    return Array.isArray(found) ? found : [];
  }

  resolve(item: CompletionItem): Promise<CompletionItem> {
    return this.#connection.sendRequest(CompletionResolveRequest.type, item);
  }

  /** The Markdown over the word at the bar in `text`. */
  async hover(name: string, text: string): Promise<string | undefined> {
    const position = await this.#show(name, text);
    const found = await this.#connection.sendRequest(HoverRequest.type, this.#at(name, position));
    return MarkupContent.is(found?.contents) ? found.contents.value : undefined;
  }

  async definitions(name: string, text: string): Promise<readonly Location[]> {
    const position = await this.#show(name, text);
    const found = await this.#connection.sendRequest(DefinitionRequest.type, this.#at(name, position));
    return (Array.isArray(found) ? found : []).filter((each): each is Location => "uri" in each);
  }

  async format(name: string): Promise<readonly TextEdit[]> {
    const { uri } = this.#document(name);
    const options = { tabSize: 8, insertSpaces: false };
    return (
      (await this.#connection.sendRequest(DocumentFormattingRequest.type, {
        textDocument: { uri },
        options,
      })) ?? []
    );
  }

  /** Ends the session as editors do. @returns the exit code of the server */
  async end(): Promise<number | null> {
    const exit = once(this.#child, "exit");
    await this.#connection.sendRequest(ShutdownRequest.type);
    await this.#connection.sendNotification(ExitNotification.type);
    await exit;
    return this.#child.exitCode;
  }

  /** Goes away without a word. @returns the exit code of the server */
  async vanish(): Promise<number | null> {
    const exit = once(this.#child, "exit");
    this.#child.stdin?.end();
    await exit;
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.dispose();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exit;
  }

  #document(name: string): Shown {
    const document = this.#documents.get(name);
    if (document === undefined) throw new Error(`${name} is not open`);
    return document;
  }

  /** Replaces the document by `text` without its bar. @returns the place of the bar */
  async #show(name: string, text: string): Promise<Position> {
    const offset = text.indexOf("|");
    const without = text.slice(0, offset) + text.slice(offset + 1);
    const { uri, version } = this.#document(name);
    this.#documents.set(name, { uri, version: version + 1, text: without });
    await this.#connection.sendNotification(DidChangeTextDocumentNotification.type, {
      textDocument: { uri, version: version + 1 },
      contentChanges: [{ text: without }],
    });
    return positionOf(without, offset);
  }

  #at(name: string, position: Position) {
    return { textDocument: { uri: this.uri(name) }, position };
  }
}

function positionOf(text: string, offset: number): Position {
  const lines = text.slice(0, offset).split("\n");
  return { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 };
}
