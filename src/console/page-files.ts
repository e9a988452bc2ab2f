/** The files of the page: from the build, or built from the sources if the program runs from them. */
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { nodeCrypto } from "../lib/files/node-modules.ts";
import { programFile } from "../lib/files/program-files.ts";
import type { FirstView } from "./api-types.ts";
import { SECURITY_HEADERS } from "./http/answer.ts";

interface PageFile {
  readonly path: string;
  readonly type: string;
  read(): Promise<Uint8Array>;
}

interface MadeFile {
  readonly plain: Uint8Array;
  readonly compressed: Uint8Array;
  readonly etag: string;
}

const FILES: readonly PageFile[] = [
  { path: "/app.js", type: "text/javascript; charset=utf-8", read: () => readScript("app") },
  { path: "/app.css", type: "text/css; charset=utf-8", read: () => readPart("app.css") },
  { path: "/favicon.svg", type: "image/svg+xml", read: () => readPart("favicon.svg") },
];

/** The resources of the first frame: browsers fetch them before they have read the document. */
const EARLY = "<app.css>; rel=preload; as=style, <app.js>; rel=modulepreload";

/**
 * Placeholders in the document for the drawn page and for its data. The data are an attribute, as an element makes
 * the parser pause.
 */
const DRAWN = '<div id="app" hidden>';
const DATA = 'data-view=""';
/** Bytes above which a document is compressed for each request. */
const WORTH_COMPRESSING = 16 * 1024;

export class PageFiles {
  readonly paths: readonly string[] = FILES.map(({ path }) => path);
  readonly #made = new Map<string, Promise<MadeFile>>();
  #document: Promise<DocumentParts> | undefined;

  /**
   * Prepares everything, so that the first request does not wait for the disk, the compressor, and the compilation of
   * code. Does nothing if the program runs from its sources: requests build the page then.
   * @param view to draw once
   */
  async prepare(view: FirstView): Promise<void> {
    try {
      await readPart("app.js");
    } catch {
      return;
    }
    const { draw } = await this.#parts();
    draw(view);
    for (const file of FILES) await this.#make(file);
  }

  /**
   * Answers with the document.
   * @param view the first page's data: the document contains them drawn, and as data for the script. Absent for a
   * client without read access
   */
  async answerDocument(
    view: FirstView | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { text, draw } = await this.#parts();
    const plain = Buffer.from(
      view === undefined
        ? text
        : text
            .replace(DRAWN, () => `${DRAWN}${draw(view)}`)
            .replace(DATA, () => `data-view='${attributeText(JSON.stringify(view))}'`),
    );
    const zips = plain.length >= WORTH_COMPRESSING && takesGzip(request);
    const body = zips ? await promisify(gzip)(plain, { level: 1 }) : plain;
    response.writeHead(200, {
      ...SECURITY_HEADERS,
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      link: EARLY,
      "content-length": body.length,
      ...(zips && { "content-encoding": "gzip" }),
    });
    response.end(request.method === "HEAD" ? undefined : body);
  }

  async answer(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const file = FILES.find((each) => each.path === path);
    if (file === undefined) return;
    const made = await this.#make(file);
    const headers = {
      ...SECURITY_HEADERS,
      "content-type": file.type,
      // A newer program may have another page.
      "cache-control": "no-cache",
      etag: made.etag,
      vary: "accept-encoding",
    };
    if (request.headers["if-none-match"] === made.etag) {
      response.writeHead(304, headers).end();
      return;
    }
    const zips = takesGzip(request);
    const body = zips ? made.compressed : made.plain;
    response.writeHead(200, {
      ...headers,
      "content-length": body.length,
      ...(zips && { "content-encoding": "gzip" }),
    });
    response.end(request.method === "HEAD" ? undefined : body);
  }

  #parts(): Promise<DocumentParts> {
    this.#document ??= readDocument();
    // The next request tries again.
    this.#document.catch(() => {
      this.#document = undefined;
    });
    return this.#document;
  }

  #make(file: PageFile): Promise<MadeFile> {
    const known = this.#made.get(file.path);
    if (known !== undefined) return known;
    const made = makeFile(file);
    this.#made.set(file.path, made);
    // The next request tries again.
    made.catch(() => this.#made.delete(file.path));
    return made;
  }
}

/** Escapes text for an attribute in single quotes. */
function attributeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("'", "&#39;");
}

function takesGzip({ headers }: IncomingMessage): boolean {
  return /\bgzip\b/.test(headers["accept-encoding"] ?? "");
}

async function makeFile(file: PageFile): Promise<MadeFile> {
  const plain = await file.read();
  const compressed = await promisify(gzip)(plain, { level: 9 });
  const etag = `"${nodeCrypto().createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`;
  return { plain, compressed, etag };
}

interface DocumentParts {
  readonly text: string;
  readonly draw: (view: FirstView) => string;
}

async function readDocument(): Promise<DocumentParts> {
  const [text, { drawFirstFrame: draw }] = await Promise.all([
    readFile(programFile("console/page/index.html"), "utf8"),
    importFirstFrame(),
  ]);
  return { text, draw };
}

async function importFirstFrame(): Promise<{ readonly drawFirstFrame: DocumentParts["draw"] }> {
  const script = await readScript("first-frame");
  return import(`data:text/javascript;base64,${Buffer.from(script).toString("base64")}`);
}

function readPart(name: string): Promise<Uint8Array> {
  return readFile(programFile(`console/page/${name}`));
}

/** The build bundles each script into one file; from the sources, the bundler of the development tools does that. */
async function readScript(name: string): Promise<Uint8Array> {
  try {
    return await readPart(`${name}.js`);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(programFile(`console/page/${name}.tsx`))],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "silent",
  });
  return outputFiles[0]?.contents ?? new Uint8Array(0);
}
