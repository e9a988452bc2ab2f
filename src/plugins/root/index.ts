/** `root`: the base directory of relative paths. */
import { definePlugin, directive, required, text } from "../../plugin/index.ts";
import { checkDirectory } from "./check-directory.ts";

export default definePlugin({
  name: "root",
  summary: "Sets the directory that relative paths of other plugins start from.",
  config: directive({ args: { path: required(text("a directory")) }, occurrences: "last" }),
  configure({ path }, settings) {
    settings.root = path;
  },
  create({ path }, site) {
    const start = (): Promise<void> => checkDirectory(path, site.log);
    return { start, examine: start };
  },
});
