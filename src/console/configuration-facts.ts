/** The configuration in force as the console shows it: without secrets. */
import { lex } from "../corefile/tokens.ts";
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
    diagnostics: (configuration?.warnings ?? []).map(withoutSecrets),
    refused:
      refused === undefined
        ? null
        : {
            at: refused.at,
            reason: maskSecrets(refused.reason),
            diagnostics: refused.diagnostics.map(withoutSecrets),
          },
    blocks: (view?.blocks() ?? []).map(({ keys, place, listeners, chain }) => ({
      keys,
      file: place.file,
      line: place.line,
      listeners,
      chain,
    })),
  };
}

function withoutSecrets<T extends { readonly message: string }>(diagnostic: T): T {
  return { ...diagnostic, message: maskSecrets(diagnostic.message) };
}

/** Words behind which secrets stand in Corefiles: those of `tsig`, `etcd`, `route53`, `azure` and the like. */
const SECRET_WORDS = (
  "secret credentials token password passwd passphrase aws_access_key secret_key client_secret access_key key_secret license_key " +
  "api_key apikey api_token access_token auth_token private_key"
).split(" ");
const MASK = "********";

/** The same in what is no Corefile: excerpts in messages, comments. */
const SECRET_LINE = new RegExp(
  `^(\\s*(?:\\d+ \\|\\s*)?(?:\\S+\\s+)*?(?:(?:${SECRET_WORDS.join("|")})\\b|header[ \\t]+[^\\s{]+))(?:[ \\t]*[:=][ \\t]*|[ \\t]+)\\S.*$`,
  "gim",
);
/** `http://user:password@host`, `https://key@host`. */
const USER_INFO = /(\/\/)[^/@\s"]+(?=@)/g;
/** `http://host/path?api-key=...`. */
const KEY_IN_URL = /([?&][^=&#\s"]*(?:key|token|secret|pass|auth|sig)[^=&#\s"]*=)[^&#\s"]+/gi;

/** Takes out what stands behind such a word up to the end of the line, and what a quoted word goes on with after it. */
export function maskSecrets(text: string): string {
  let masked = "";
  let from = 0;
  let words = 0;
  let first = "";
  for (const { kind, text: word, startsLine, start, end } of lex(text, "").tokens) {
    if (startsLine || kind !== "word") words = 0;
    words++;
    if (words === 1) first = word.toLowerCase();
    // `header NAME VALUE` is how a collector or an upstream is told a key.
    const isSecret = SECRET_WORDS.includes(first) ? words > 1 : first === "header" && words > 2;
    if (!isSecret || kind !== "word") continue;
    // Lines keep their numbers, for the diagnostics at them.
    masked += `${text.slice(from, start)}${MASK}${text.slice(start, end).replaceAll(/[^\n]/g, "")}`;
    from = end;
  }
  masked += text.slice(from);
  return masked
    .replaceAll(SECRET_LINE, `$1 ${MASK}`)
    .replaceAll(USER_INFO, `$1${MASK}`)
    .replaceAll(KEY_IN_URL, `$1${MASK}`);
}
