/** The configuration in force for display: without secrets. */
import { lex } from "../corefile/tokens.ts";
import type { ServerControl } from "../plugin/contract/site.ts";
import type { ConfigurationAnswer } from "./api-types.ts";

export function configurationAnswer({ view }: ServerControl): ConfigurationAnswer {
  const configuration = view?.configuration();
  const { refused } = configuration ?? {};
  const masked = maskedMessages(refused?.reason ?? "");
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
            reason: maskReason(refused.reason),
            diagnostics: refused.diagnostics.map((each) =>
              withoutSecrets({ ...each, message: masked.get(each.message) ?? each.message }),
            ),
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

/** A message with its place, and the line of the Corefile that stands below it. */
const MESSAGE_WITH_LINE = /^(.*?:\d+:\d+: \w+: )(.*)\n(\s*\d+ \| (.*))$/gm;
const QUOTED = /(['"])((?:(?!\1).)+)\1/g;

/** The reason of a refused reload, without secrets: a message may quote one. */
export function maskReason(reason: string): string {
  const messages = maskedMessages(reason);
  return maskSecrets(
    reason.replaceAll(
      MESSAGE_WITH_LINE,
      (_whole, place: string, message: string, line: string) =>
        `${place}${messages.get(message) ?? message}\n${line}`,
    ),
  );
}

/** Maps messages about lines with secrets to their masked form. */
function maskedMessages(reason: string): Map<string, string> {
  const messages = new Map<string, string>();
  for (const [, , message = "", , line = ""] of reason.matchAll(MESSAGE_WITH_LINE)) {
    const [directive] = line.trim().split(/\s+/, 1);
    const isSecret = line.search(SECRET_LINE) >= 0;
    const hasUser = line.search(USER_INFO) >= 0;
    if (!isSecret && !hasUser) continue;
    const masked = message.replaceAll(QUOTED, (whole: string, quote: string, word: string) => {
      if (word === directive) return whole;
      if (isSecret) return `${quote}${MASK}${quote}`;
      return word.includes("@") ? `${quote}${MASK}${word.slice(word.lastIndexOf("@"))}${quote}` : whole;
    });
    messages.set(message, masked);
  }
  return messages;
}

/** Words that precede secrets in Corefiles: those of `tsig`, `etcd`, `route53`, `azure` and the like. */
const SECRET_WORDS = (
  "secret credentials token password passwd passphrase aws_access_key secret_key client_secret access_key key_secret license_key " +
  "api_key apikey api_token access_token auth_token private_key"
).split(" ");
const MASK = "********";

/** The same outside Corefile syntax: excerpts in messages, comments. */
const SECRET_LINE = new RegExp(
  `^(\\s*(?:\\d+ \\|\\s*)?(?:\\S+\\s+)*?(?:(?:${SECRET_WORDS.join("|")})\\b|header[ \\t]+[^\\s{]+))(?:[ \\t]*[:=][ \\t]*|[ \\t]+)\\S.*$`,
  "gim",
);
/** `http://user:password@host`, `https://key@host`. */
const USER_INFO = /(\/\/)[^/@\s"]+(?=@)/g;
/** `http://host/path?api-key=...`. */
const KEY_IN_URL = /([?&][^=&#\s"]*(?:key|token|secret|pass|auth|sig)[^=&#\s"]*=)[^&#\s"']+/gi;

/** Masks the rest of the line after such a word, and the rest of a quoted word that continues on further lines. */
export function maskSecrets(text: string): string {
  let masked = "";
  let from = 0;
  let words = 0;
  let first = "";
  for (const { kind, text: word, startsLine, start, end } of lex(text, "").tokens) {
    if (startsLine || kind !== "word") words = 0;
    words++;
    if (words === 1) first = word.toLowerCase();
    // `header NAME VALUE` passes a key to a collector or an upstream.
    const isSecret = SECRET_WORDS.includes(first) ? words > 1 : first === "header" && words > 2;
    if (!isSecret || kind !== "word") continue;
    // Keeps the line numbers, for diagnostics.
    masked += `${text.slice(from, start)}${MASK}${text.slice(start, end).replaceAll(/[^\n]/g, "")}`;
    from = end;
  }
  masked += text.slice(from);
  return masked
    .replaceAll(SECRET_LINE, `$1 ${MASK}`)
    .replaceAll(USER_INFO, `$1${MASK}`)
    .replaceAll(KEY_IN_URL, `$1${MASK}`);
}
