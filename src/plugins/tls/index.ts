/** `tls`: certificate and key of a server block's encrypted listeners (CoreDNS facts 2.38). */
import { IdentityHolder } from "../../lib/server-identity.ts";
import {
  definePlugin,
  directive,
  optional,
  required,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { Certificates } from "./certificates.ts";

const MODES = ["nocert", "request", "require", "verify_if_given", "require_and_verify"] as const;

const mode: Value<(typeof MODES)[number]> = {
  expected: `one of ${MODES.join(", ")}`,
  parse: (word) =>
    MODES.find((known) => known === word) ?? new ValueProblem(`unknown authentication type '${word}'`),
};

export default definePlugin({
  name: "tls",
  summary: "Gives a server block's encrypted listeners their certificate.",
  config: directive({
    args: { cert: required(text()), key: required(text()), ca: optional(text()) },
    options: { client_auth: single(mode, "nocert"), keylog: single(text()) },
  }),
  configure(_config, settings) {
    settings.identity = new IdentityHolder();
  },
  create: (config, site) => new Certificates(config, site),
});
