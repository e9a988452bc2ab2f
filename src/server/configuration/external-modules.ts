/** Modules of external plugins: finds them, notices changes, and loads them. */

import { readFileSync, statSync } from "node:fs";
import { createRequire, isBuiltin, registerHooks } from "node:module";
import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { programModule } from "../../lib/files/program-files.ts";
import { messageOf } from "../../lib/text/message-of.ts";

/** A module that cannot be found; the message lists the places that were searched. */
export class ModuleNotFound extends Error {
  override readonly name = "ModuleNotFound";
}

/**
 * The file of `module`: a path (it begins with `./`, `../` or `/`, or ends like a source file), or an npm package.
 * @param from the folder that paths are relative to; packages are searched from there upwards
 * @throws ModuleNotFound
 */
export function locateModule(module: string, from: string): string {
  return isPath(module) ? locateFile(resolve(from, module)) : locatePackage(module, from);
}

/** A stamp that changes with the content of the file; `undefined` if the file is gone. */
export function stampOf(file: string): string | undefined {
  const status = statSync(file, { bigint: true, throwIfNoEntry: false });
  return status === undefined ? undefined : `${status.mtimeNs}-${status.size}`;
}

/**
 * Imports the file; each `version` of it anew. Its own imports are loaded once.
 * @returns its default export
 * @throws the error of the module, or the reason why it is not a module
 */
export async function importFile(file: string, version: string): Promise<unknown> {
  const url = pathToFileURL(file);
  url.searchParams.set("v", version);
  const loaded: { default?: unknown } = await import(url.href);
  return loaded.default;
}

/** The exports of `portolan`, mapped to the modules of this program. */
const EXPORTS: ReadonlyMap<string, string> = new Map([
  ["portolan", "index"],
  ["portolan/plugin", "plugin/index"],
  ["portolan/dns", "dns/index"],
  ["portolan/testing", "plugin/testing"],
]);

/** Module hooks belong to the thread, however many servers it has. */
let providesImports = false;

/**
 * From now on `import "portolan/plugin"` loads this program's modules, wherever the importing file is. A single file
 * beside a Corefile has no `node_modules` above it, and a second copy of the package would have classes of its own.
 * Holds for the whole process or thread.
 */
export function providePortolanImports(): void {
  if (providesImports) return;
  providesImports = true;
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const path = EXPORTS.get(specifier);
      if (path === undefined) return withFormat(nextResolve(specifier, context));
      return { url: programModule(path).href, shortCircuit: true };
    },
  });
}

/** A single file has no package.json that declares it a module, and Node would warn about that. */
function withFormat<R extends { url: string; format?: string | null | undefined }>(resolved: R): R {
  const isPlugin = /\.ts\?v=/.test(resolved.url) && (resolved.format ?? undefined) === undefined;
  return isPlugin ? { ...resolved, format: "module-typescript" } : resolved;
}

function isPath(module: string): boolean {
  return isAbsolute(module) || /^\.\.?\//.test(module) || /\.[cm]?[jt]s$/.test(module);
}

/** Far larger than any module; Node would read the whole file. */
const MAX_MODULE_OCTETS = 16 * 1024 * 1024;

function locateFile(path: string): string {
  const status = statSync(path, { throwIfNoEntry: false });
  if (status === undefined) throw new ModuleNotFound(`there is no file ${path}`);
  if (!status.isFile()) throw new ModuleNotFound(`${path} is not a file: name the module itself`);
  if (status.size > MAX_MODULE_OCTETS)
    throw new ModuleNotFound(
      `${path} is larger than ${MAX_MODULE_OCTETS / 1024 / 1024} MiB: name the module itself`,
    );
  // Node's own message for a binary file is about semicolons.
  if (readFileSync(path).includes(0))
    throw new ModuleNotFound(`${path} is not a text file: name the module itself`);
  return path;
}

function locatePackage(module: string, from: string): string {
  if (/^[a-z0-9-]+(\.[a-z0-9-]+)+\//.test(module)) {
    throw new ModuleNotFound(
      "that is the path of a Go package, and CoreDNS's plugins are not for this server",
    );
  }
  const require = createRequire(join(resolve(from), "plugin.cfg"));
  if (isBuiltin(module))
    throw new ModuleNotFound("that is a module of Node itself; a path begins with ./ or /");
  try {
    return require.resolve(module);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    const folders = require.resolve.paths(module) ?? [];
    if (code === "ERR_PACKAGE_PATH_NOT_EXPORTED") {
      const file = moduleOnlyEntry(module, folders);
      if (file !== undefined) return file;
    }
    if (code !== "MODULE_NOT_FOUND") throw new ModuleNotFound(messageOf(error));
    throw new ModuleNotFound(
      `there is no package "${module}" in ${folders.join(", ")}; a path begins with ./ or /`,
    );
  }
}

/** The entry of a package that `import` may use and `require` may not. */
function moduleOnlyEntry(name: string, folders: readonly string[]): string | undefined {
  for (const folder of folders) {
    const base = join(folder, name);
    try {
      const manifest: unknown = JSON.parse(readFileSync(join(base, "package.json"), "utf8"));
      const target = importTarget(property(manifest, "exports"));
      if (target !== undefined) return fileURLToPath(new URL(target, pathToFileURL(`${base}/`)));
    } catch {
      // Not found here, or not a package: the next folder may have it.
    }
  }
  return undefined;
}

function importTarget(exports: unknown): string | undefined {
  if (typeof exports === "string") return exports;
  for (const condition of [".", "node", "import", "default"]) {
    const inner = property(exports, condition);
    if (inner !== undefined) return importTarget(inner);
  }
  return undefined;
}

function property(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? Object.entries(value).find(([key]) => key === name)?.[1]
    : undefined;
}
