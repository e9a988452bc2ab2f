/** The grammar of `tls { acme … }`. */
import { isIP } from "node:net";
import { domainToASCII } from "node:url";
import type { Token } from "../../../corefile/tokens.ts";
import type { Directive } from "../../../corefile/tree.ts";
import { Name, NameError } from "../../../dns/index.ts";
import { nearestWord } from "../../../lib/text/nearest-word.ts";
import { INVALID } from "../../../plugin/config/arguments.ts";
import type { ConfigContext } from "../../../plugin/config/context.ts";
import { type DiscoveryConfig, discoveryOption } from "../discovery.ts";

export interface AcmeConfig {
  /** In lower case and without a final dot, as in certificates. */
  readonly domains: readonly string[];
  readonly email: string | undefined;
  /** URL of the CA's directory. */
  readonly ca: string;
  readonly storage: string;
  /** A file with the root certificates for connections to the CA. */
  readonly caRoot: string | undefined;
  /** Host and port. */
  readonly resolver: string | undefined;
  readonly discovery: DiscoveryConfig | undefined;
}

const LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory";
const STORAGE = ".coredns/acme";
const OPTIONS = ["acme", "email", "ca", "storage", "ca_root", "resolver", "discovery"] as const;
/** Names and usages for help. */
export const acmeOptions: readonly { readonly name: string; readonly usage: string }[] = [
  { name: "acme", usage: "DOMAIN..." },
  ...OPTIONS.slice(1, -1).map((name) => ({ name, usage: "VALUE" })),
];

type OptionName = (typeof OPTIONS)[number];

/** @returns nothing after reporting an error */
export function readAcme(occurrence: Directive, context: ConfigContext): AcmeConfig | undefined {
  const { report } = context;
  const lines = new Map<OptionName, Directive>();
  let isValid = true;
  const fault = (
    { span }: Token,
    message: string,
    more: { expected?: string; suggestion?: string | undefined } = {},
  ) => {
    report.error("PLUGIN_BAD_VALUE", span, message, more);
    isValid = false;
  };
  for (const line of occurrence.block ?? []) {
    const { name, args } = line;
    const option = OPTIONS.find((known) => known === name.text);
    if (option === undefined) {
      fault(name, `unknown ACME option "${name.text}"`, {
        expected: `one of ${OPTIONS.join(", ")}`,
        suggestion: nearestWord(name.text, OPTIONS),
      });
      continue;
    }
    if (lines.has(option)) fault(name, `ACME option "${option}" can only be specified once`);
    lines.set(option, line);
    if (option !== "acme" && option !== "discovery" && args.length !== 1)
      fault(
        args[1] ?? name,
        `Wrong argument count or unexpected line ending after '${(args[1] ?? name).text}'`,
      );
  }
  const acme = lines.get("acme");
  if (acme === undefined || acme.args.length === 0)
    fault(acme?.name ?? occurrence.name, "ACME requires at least one domain");
  const domains = (acme?.args ?? []).flatMap((token) => {
    const domain = domainOf(token.text);
    if (typeof domain === "string") return domain;
    fault(token, `invalid ACME domain "${token.text}": ${domain.problem}`);
    return [];
  });
  const word = (option: OptionName): Token | undefined => lines.get(option)?.args[0];
  const ca = word("ca");
  if (ca !== undefined && !isDirectory(ca.text))
    fault(ca, `invalid ACME CA "${ca.text}"`, {
      expected: "the URL of a directory, such as https://ca.example/directory",
    });
  const email = word("email");
  if (email !== undefined && !/^[^\s@/\\]+@[^\s@/\\]+$/.test(email.text))
    fault(email, `invalid ACME email "${email.text}"`, {
      expected: "an address such as hostmaster@example.org",
    });
  const resolver = word("resolver");
  if (resolver !== undefined && !/^(?:\[[0-9a-f:.]+\]|[^:\s[\]]+):\d{1,5}$/i.test(resolver.text))
    fault(resolver, `invalid ACME resolver "${resolver.text}"`, {
      expected: "a host with a port, such as 192.0.2.53:53",
    });
  const said = lines.get("discovery");
  const discovery = discoveryOption.read(said === undefined ? [] : [said], context);
  if (!isValid || discovery === INVALID) return undefined;
  return {
    domains: [...new Set(domains)],
    email: email?.text,
    ca: ca?.text ?? LETS_ENCRYPT,
    storage: word("storage")?.text ?? STORAGE,
    caRoot: word("ca_root")?.text,
    resolver: resolver?.text,
    discovery,
  };
}

function domainOf(word: string): string | { readonly problem: string } {
  const bare = word.replace(/\.$/, "");
  if (isIP(bare.replace(/^\[|\]$/g, "")) !== 0)
    return { problem: "certificates for addresses are not supported" };
  const wildcard = bare.startsWith("*.") ? "*." : "";
  const rest = bare.slice(wildcard.length);
  if (rest.includes("*")) return { problem: "a wildcard can only be the first label" };
  const ascii = domainToASCII(rest);
  if (ascii === "" || isIP(ascii) !== 0 || !/^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(ascii))
    return { problem: "not a host name" };
  try {
    Name.parse(`_acme-challenge.${ascii}.`);
  } catch (error) {
    if (error instanceof NameError) return { problem: error.message };
    throw error;
  }
  return `${wildcard}${ascii}`;
}

function isDirectory(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? "");
}
