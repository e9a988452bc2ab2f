/** `acl [ZONES...] { ACTION [type QTYPE...] [net SOURCE...] }`: sections in any order and number. */
import type { Token } from "../../corefile/tokens.ts";
import type { Directive } from "../../corefile/tree.ts";
import { parseRecordType, recordTypeName } from "../../dns/type-names.ts";
import { type IpPrefix, parseIpPrefix } from "../../lib/net/prefix-set.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import type { ConfigContext } from "../../plugin/config/context.ts";
import { directive, type ZoneList, zones } from "../../plugin/index.ts";

/** The policy on one line. */
export interface AclPolicy {
  readonly action: Action;
  /** Types of queries; `undefined` for all. */
  readonly types: ReadonlySet<number> | undefined;
  /** Networks of clients; `undefined` for all. */
  readonly networks: readonly IpPrefix[] | undefined;
  /** Line number in the Corefile, for messages. */
  readonly line: number;
}

export const ACTIONS = ["allow", "block", "filter", "drop"] as const;
export type Action = (typeof ACTIONS)[number];

export interface AclRule {
  readonly zones: ZoneList;
  readonly policies: readonly AclPolicy[];
}

const lines = directive({
  args: { zones: zones() },
  options: {},
  occurrences: "each",
  // Every line is a policy; errors are reported where the policies are made.
  otherwise: () => true,
});

export const ruleOfDirective = {
  parse(occurrences: readonly Directive[], context: ConfigContext): readonly AclRule[] | undefined {
    const read = lines.parse(occurrences, context);
    const policies = occurrences.map(({ block }) => (block ?? []).map((line) => readPolicy(line, context)));
    if (read === undefined || policies.flat().includes(undefined)) return undefined;
    return read.map((rule, index) => ({
      zones: rule.zones,
      policies: policies[index]?.filter((policy) => policy !== undefined) ?? [],
    }));
  },
  description: {
    usage: "[ZONES...]",
    options: ACTIONS.map((name) => ({ name, usage: "[type QTYPE...] [net SOURCE...]" })),
  },
};

function readPolicy(line: Directive, context: ConfigContext): AclPolicy | undefined {
  const { report } = context;
  const action = ACTIONS.find((name) => name === line.name.text.toLowerCase());
  if (action === undefined) {
    report.error(
      "PLUGIN_BAD_VALUE",
      line.name.span,
      `unexpected token "${line.name.text}"; expect 'allow', 'block', 'filter' or 'drop'`,
      { expected: `one of ${ACTIONS.join(", ")}`, suggestion: nearestWord(line.name.text, ACTIONS) },
    );
    return undefined;
  }
  if (line.block !== undefined) {
    report.error("PLUGIN_UNEXPECTED_BLOCK", line.name.span, `'${line.name.text}' takes no block`);
    return undefined;
  }
  const sections = readSections(line.args, context);
  if (sections === undefined) return undefined;
  const types = readTypes(sections.type, context);
  const networks = readNetworks(sections.net, context);
  if (types === false || networks === false) return undefined;
  return { action, types, networks, line: line.name.span.line };
}

interface Sections {
  readonly type: Token[];
  readonly net: Token[];
}

function readSections(tokens: readonly Token[], { report }: ConfigContext): Sections | undefined {
  const sections: Sections = { type: [], net: [] };
  let open: { readonly keyword: Token; readonly words: Token[]; readonly start: number } | undefined;
  const isClosed = (): boolean => {
    if (open === undefined || open.words.length > open.start) return true;
    const { text, span } = open.keyword;
    report.error("PLUGIN_ARGUMENT_MISSING", span, `no token specified in "${text.toLowerCase()}" section`);
    return false;
  };
  for (const token of tokens) {
    const keyword = token.text.toLowerCase();
    if (keyword === "type" || keyword === "net") {
      if (!isClosed()) return undefined;
      const words = sections[keyword];
      open = { keyword: token, words, start: words.length };
    } else if (open === undefined) {
      const message = `unexpected token "${token.text}"; expect 'type | net'`;
      report.error("PLUGIN_BAD_VALUE", token.span, message, { expected: "type QTYPE..., or net SOURCE..." });
      return undefined;
    } else {
      open.words.push(token);
    }
  }
  return isClosed() ? sections : undefined;
}

/** @returns `undefined` for all types, `false` after reporting an error */
function readTypes(
  tokens: readonly Token[],
  { report }: ConfigContext,
): ReadonlySet<number> | undefined | false {
  const types = new Set<number>();
  let all = tokens.length === 0;
  let valid = true;
  for (const { text, span } of tokens) {
    if (text === "*") {
      all = true;
      continue;
    }
    const type = parseRecordType(text);
    // CoreDNS accepts only names of types in capitals.
    if (type === undefined || recordTypeName(type) !== text || /^TYPE\d+$/.test(text)) {
      report.error("PLUGIN_BAD_VALUE", span, `unexpected token "${text}"; expect legal QTYPE`, {
        expected: "a record type in capitals such as A or AAAA, or * for all",
        suggestion: type === undefined ? undefined : recordTypeName(type),
      });
      valid = false;
    } else {
      types.add(type);
    }
  }
  if (!valid) return false;
  return all ? undefined : types;
}

function readNetworks(
  tokens: readonly Token[],
  { report }: ConfigContext,
): readonly IpPrefix[] | undefined | false {
  const networks: IpPrefix[] = [];
  let all = tokens.length === 0;
  let valid = true;
  for (const { text, span } of tokens) {
    const prefix = text === "*" ? undefined : parseIpPrefix(text);
    if (prefix !== undefined) {
      networks.push(prefix);
    } else if (text === "*") {
      all = true;
    } else {
      const shown = text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`;
      report.error("PLUGIN_BAD_VALUE", span, `illegal CIDR notation "${shown}"`, {
        expected: "an IP address, a network such as 10.0.0.0/8 or 2001:db8::/32, or * for all",
      });
      valid = false;
    }
  }
  if (!valid) return false;
  return all ? undefined : networks;
}
