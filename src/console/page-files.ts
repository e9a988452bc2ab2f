/** The files of the page: as the build made them, or out of the sources where the program runs from those. */
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { nodeCrypto } from "../lib/node-modules.ts";
import { programFile } from "../lib/program-files.ts";
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
  { path: "/app.js", type: "text/javascript; charset=utf-8", read: readScript },
  {
    path: "/favicon.svg",
    type: "image/svg+xml",
    read: () => readFile(programFile("console/page/favicon.svg")),
  },
];

/** In the document: the place for the data. An attribute, as an element of data makes the parser pause. */
const DATA = 'data-first-view=""';
/** Octets from which on a document is compressed for each who asks. */
const WORTH_COMPRESSING = 16 * 1024;

export class PageFiles {
  readonly paths: readonly string[] = FILES.map(({ path }) => path);
  readonly #made = new Map<string, Promise<MadeFile>>();
  #document: Promise<string> | undefined;

  /**
   * Answers with the document itself.
   * @param view what the page would ask for first, so that it need not; absent for who may not read it
   */
  async answerDocument(
    view: object | undefined,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    this.#document ??= readFile(programFile("console/page/index.html"), "utf8");
    // The next who asks tries again.
    this.#document.catch(() => {
      this.#document = undefined;
    });
    const document = await this.#document;
    const data = view === undefined ? "" : attributeText(JSON.stringify(view));
    const plain = Buffer.from(document.replace(DATA, () => `data-first-view='${data}'`));
    const zips = plain.length >= WORTH_COMPRESSING && takesGzip(request);
    const body = zips ? await promisify(gzip)(plain, { level: 1 }) : plain;
    response.writeHead(200, {
      ...SECURITY_HEADERS,
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      // Browsers begin to fetch it before they have read the document.
      link: "<app.js>; rel=modulepreload",
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

  #make(file: PageFile): Promise<MadeFile> {
    const known = this.#made.get(file.path);
    if (known !== undefined) return known;
    const made = makeFile(file);
    this.#made.set(file.path, made);
    // The next who asks tries again.
    made.catch(() => this.#made.delete(file.path));
    return made;
  }
}

/** For an attribute in single quotes. */
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

/** The build joins the script into one file; in the sources there is none, and the bundler of the development tools makes it. */
async function readScript(): Promise<Uint8Array> {
  try {
    return await readFile(programFile("console/page/app.js"));
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ENOENT")) throw error;
  }
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(programFile("console/page/app.tsx"))],
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".css": "text" },
    logLevel: "silent",
  });
  return outputFiles[0]?.contents ?? new Uint8Array(0);
}
