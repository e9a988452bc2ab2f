/**
 * Paths of the program's own files. The program runs from its sources, where this module is
 * `src/lib/files/program-files.ts`, and from its build, where shared modules are in `dist/chunks/`.
 */
const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
const root = new URL(extension === ".ts" ? "../../" : "../", import.meta.url);

/** @param path from the root, with slashes, such as `plugins/plugin.cfg` */
export function programFile(path: string): URL {
  return new URL(path, root);
}

/** @param path below `docs/`, which the build copies beside the program's other files */
export function documentationFile(path: string): URL {
  return new URL(`${extension === ".ts" ? "../" : ""}docs/${path}`, root);
}

/** @param path from the root and without extension, such as `plugin/index`; the build makes an entry for each */
export function programModule(path: string): URL {
  return new URL(path + extension, root);
}
