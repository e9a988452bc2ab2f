/** `tls`: certificate and key of a server block's encrypted listeners (CoreDNS facts 2.38). */
import { IdentityHolder } from "../../lib/server-identity.ts";
import {
  type ConfigSchema,
  customDirective,
  definePlugin,
  directive,
  optional,
  required,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { AcmeIdentity, acmeState } from "./acme/acme-identity.ts";
import { ChallengeResponder } from "./acme/challenge-responder.ts";
import { type AcmeConfig, acmeOptions, readAcme } from "./acme/config.ts";
import { Certificates, type TlsConfig } from "./certificates.ts";

const MODES = ["nocert", "request", "require", "verify_if_given", "require_and_verify"] as const;

const mode: Value<(typeof MODES)[number]> = {
  expected: `one of ${MODES.join(", ")}`,
  parse: (word) =>
    MODES.find((known) => known === word) ?? new ValueProblem(`unknown authentication type '${word}'`),
};

const files = directive({
  args: { cert: required(text()), key: required(text()), ca: optional(text()) },
  options: { client_auth: single(mode, "nocert"), keylog: single(text()) },
});

/** A certificate out of files, or one from a certificate authority. */
type Config = { readonly files: TlsConfig } | { readonly acme: AcmeConfig };

const config: ConfigSchema<Config> = customDirective<Config>(
  {
    usage: `${files.description.usage} | { acme DOMAIN... }`,
    options: [...files.description.options, ...acmeOptions],
  },
  (occurrences, context) => {
    const [first] = occurrences;
    const isAcme = occurrences.length === 1 && first?.args.length === 0 && (first.block?.length ?? 0) > 0;
    if (!isAcme || first === undefined)
      return files.parse(occurrences, context)?.map((read): Config => ({ files: read }));
    const read = readAcme(first, context);
    return read === undefined ? undefined : [{ acme: read }];
  },
);

export default definePlugin({
  name: "tls",
  summary: "Gives a server block's encrypted listeners their certificate.",
  config,
  configure(_config, settings) {
    settings.identity = new IdentityHolder();
  },
  create: (said, site) =>
    "acme" in said ? new AcmeIdentity(said.acme, site) : new Certificates(said.files, site),
  createForEveryBlock: (all, site) =>
    all.some((said) => "acme" in said) ? new ChallengeResponder(site, acmeState(site)) : undefined,
});
