import { join } from "node:path";

/**
 * The script for Node that is a tool of the packages installed in `root`.
 *
 * The compiler has a path of its own: a second TypeScript is installed as `typescript-5.9`, and whichever npm installed last is `tsc` in
 * node_modules/.bin.
 */
export function toolPath(root: string, tool: string): string {
  const modules = join(root, "node_modules");
  return tool === "tsc" ? join(modules, "typescript", "bin", "tsc") : join(modules, ".bin", tool);
}
