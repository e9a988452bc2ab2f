/** `tls`: certificate and key of a server block's encrypted listeners. */
import { IdentityHolder } from "../../lib/files/server-identity.ts";
import {
  type ConfigSchema,
  customDirective,
  definePlugin,
  directive,
  optional,
  required,
  type Site,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { AcmeIdentity, acmeState } from "./acme/acme-identity.ts";
import { ChallengeResponder } from "./acme/challenge-responder.ts";
import { type AcmeConfig, acmeOptions, readAcme } from "./acme/config.ts";
import { Certificates, type TlsConfig } from "./certificates.ts";
import {
  type Designation,
  type DiscoveryConfig,
  DiscoveryResponder,
  discoveryOption,
  isDesignated,
} from "./discovery.ts";

const MODES = ["nocert", "request", "require", "verify_if_given", "require_and_verify"] as const;

const mode: Value<(typeof MODES)[number]> = {
  expected: `one of ${MODES.join(", ")}`,
  parse: (word) =>
    MODES.find((known) => known === word) ?? new ValueProblem(`unknown authentication type '${word}'`),
};

const files = directive({
  args: { cert: required(text()), key: required(text()), ca: optional(text()) },
  options: { client_auth: single(mode, "nocert"), keylog: single(text()), discovery: discoveryOption },
});

/** A certificate from files, or from a CA. */
type Config = { readonly files: TlsConfig } | { readonly acme: AcmeConfig };

const config: ConfigSchema<Config> = customDirective<Config>(
  {
    usage: `${files.description.usage} | { acme DOMAIN... }`,
    options: [...files.description.options, ...acmeOptions],
  },
  (occurrences, context) => {
    const [first] = occurrences;
    const isAcme = occurrences.length === 1 && first?.args.length === 0 && (first.block?.length ?? 0) > 0;
    const acme = isAcme && first !== undefined ? readAcme(first, context) : undefined;
    const configs: readonly Config[] | undefined = isAcme
      ? acme && [{ acme }]
      : files.parse(occurrences, context)?.map((read) => ({ files: read }));
    const span = first?.block?.find(({ name }) => name.text === "discovery")?.name.span;
    if (span !== undefined && configs !== undefined && !context.keys.some(isDesignated))
      context.report.warning(
        "TLS_DISCOVERY_OF_NOTHING",
        span,
        "'discovery' has nothing to announce: the block has no tls://, https://, https3:// or quic:// key for the root zone",
      );
    return configs;
  },
);

export default definePlugin({
  name: "tls",
  summary: "Configures the certificate of encrypted listeners.",
  config,
  configure(_said, settings) {
    settings.identity = new IdentityHolder();
  },
  create(said, site) {
    const discovery = discoveryOf(said);
    if (discovery !== undefined) designations(site).push({ config: discovery, block: site.block });
    return "acme" in said ? new AcmeIdentity(said.acme, site) : new Certificates(said.files, site);
  },
  createForEveryBlock: (all, site) => [
    ...(all.some((said) => "acme" in said) ? [new ChallengeResponder(site, acmeState(site))] : []),
    ...(all.some((said) => discoveryOf(said) !== undefined)
      ? [new DiscoveryResponder(designations(site))]
      : []),
  ],
});

function discoveryOf(said: Config): DiscoveryConfig | undefined {
  return "acme" in said ? said.acme.discovery : said.files.discovery;
}

/** The designations of all blocks of the configuration, in order. */
function designations(site: Site): Designation[] {
  return site.shared("designations", () => []);
}
