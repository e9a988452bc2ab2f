import { type Argument, INVALID } from "../../plugin/config/arguments.ts";
import {
  type ConfigSchema,
  choice,
  directive,
  flag,
  merged,
  optionList,
  required,
  rest,
  single,
  text,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";

export interface SignConfig {
  readonly dbfile: string;
  readonly zones: ZoneList;
  readonly key: readonly { readonly from: "file"; readonly name: readonly string[] }[];
  readonly directory: string;
  readonly nsec3: boolean;
}

/** CoreDNS names a second source and rejects it, so this plugin does, too. */
const source: Argument<"file"> = {
  read(cursor, label) {
    const token = cursor.peek();
    if (token?.text === "directory") {
      cursor.context.report.error("SIGN_KEY_DIRECTORY", token.span, "directory: not implemented", {
        expected: "file, and the names of pairs of key files",
      });
      return INVALID;
    }
    return required(choice(["file"])).read(cursor, label);
  },
  usage: () => "file",
};

export const signConfig: ConfigSchema<readonly SignConfig[]> = merged(
  directive({
    args: { dbfile: required(text("a path")), zones: zones() },
    options: {
      key: optionList({ from: source, name: rest(text("the name of a pair of key files"), 1) }),
      directory: single(text("a folder"), "/var/lib/coredns"),
      nsec3: flag(),
    },
    occurrences: "each",
    check(config, report, at) {
      if (config.key.length === 0) report.error("SIGN_KEY_MISSING", at(), "no keys: 'key file' is required");
    },
  }),
);
