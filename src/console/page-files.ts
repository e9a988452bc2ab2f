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
  /** What browsers begin to fetch before they have read this file. */
  readonly link?: string;
  read(): Promise<Uint8Array>;
}

interface MadeFile {
  readonly plain: Uint8Array;
  readonly compressed: Uint8Array;
  readonly etag: string;
}

const FILES: readonly PageFile[] = [
  {
    path: "/",
    type: "text/html; charset=utf-8",
    link: "<app.js>; rel=modulepreload",
    read: () => readFile(programFile("console/page/index.html")),
  },
  { path: "/app.js", type: "text/javascript; charset=utf-8", read: readScript },
  {
    path: "/favicon.svg",
    type: "image/svg+xml",
    read: () => readFile(programFile("console/page/favicon.svg")),
  },
];

export class PageFiles {
  readonly paths: readonly string[] = FILES.map(({ path }) => path);
  readonly #made = new Map<string, Promise<MadeFile>>();

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
      ...(file.link !== undefined && { link: file.link }),
    };
    if (request.headers["if-none-match"] === made.etag) {
      response.writeHead(304, headers).end();
      return;
    }
    const zips = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "");
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
