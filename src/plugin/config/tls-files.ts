/** `tls [CERT KEY [CA]] | [CA]`: the files of a TLS client. */
import { type Argument, INVALID, rest } from "./arguments.ts";
import { text } from "./values.ts";

/** The files as written: a CA; a certificate and its key; or all three. */
export const tlsFiles: Argument<readonly string[]> = {
  read(cursor, label) {
    const files = rest(text("a file")).read(cursor, label);
    if (files === INVALID || files.length <= 3) return files;
    const problem = `maximum of three arguments allowed for TLS config, found ${files.length}`;
    cursor.context.report.error("PLUGIN_BAD_VALUE", cursor.owner.span, problem, {
      expected: "a CA, or a certificate and its key, or all three",
    });
    return INVALID;
  },
  usage: () => "[CERT KEY [CA]] | [CA]",
};
