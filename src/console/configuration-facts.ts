/** The configuration in force as the console shows it: without secrets. */
import type { ServerControl } from "../plugin/site.ts";
import type { ConfigurationAnswer } from "./api-types.ts";

export function configurationAnswer({ view }: ServerControl): ConfigurationAnswer {
  const configuration = view?.configuration();
  const { refused } = configuration ?? {};
  return {
    file: configuration?.file ?? "",
    text: maskSecrets(configuration?.text ?? ""),
    sha512: configuration?.sha512 ?? "",
    inForceSince: configuration?.inForceSince ?? 0,
    diagnostics: configuration?.warnings ?? [],
    refused:
      refused === undefined
        ? null
        : { at: refused.at, reason: maskSecrets(refused.reason), diagnostics: refused.diagnostics },
    blocks: (view?.blocks() ?? []).map(({ keys, place, listeners, chain }) => ({
      keys,
      file: place.file,
      line: place.line,
      listeners,
      chain,
    })),
  };
}

/** Words behind which secrets stand in Corefiles: those of `tsig`, `etcd`, `route53`, `azure` and the like, and headers for
 * collectors of `trace`. */
const SECRET_WORDS =
  /^(\s*(?:\d+ \|\s*)?(?:\S+\s+)*?(?:(?:secret|credentials|token|password|passwd|aws_access_key|secret_key|client_secret|access_key|key_secret|license_key)\b|header[ \t]+[^\s{]+))[ \t]+\S.*$/gim;

/** Takes out what stands behind such a word up to the end of the line. */
export function maskSecrets(text: string): string {
  return text.replaceAll(SECRET_WORDS, "$1 ********");
}
