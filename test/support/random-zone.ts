/** Zones that no one would write, made of few labels so that names meet: wildcards, empty non-terminals, delegations, aliases. */
import fc from "fast-check";

export interface RandomZone {
  /** Zone text. */
  readonly lines: readonly string[];
  readonly questions: readonly { readonly name: string; readonly type: string }[];
}

const APEX = "example.org.";

const label = fc.constantFrom("a", "b", "c", "ns", "*");
const owner = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => `${labels.join(".")}.${APEX}`);
const target = fc.oneof(
  { weight: 4, arbitrary: owner },
  { weight: 1, arbitrary: fc.constantFrom("x.other.test.", APEX) },
);

const content = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 200 }).map((octet) => `A 192.0.2.${octet}`) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 99 }).map((group) => `AAAA 2001:db8::${group}`) },
  { weight: 1, arbitrary: fc.constantFrom('TXT "one"', 'TXT "two" "three"') },
  { weight: 2, arbitrary: target.map((name) => `NS ${name}`) },
  { weight: 1, arbitrary: target.map((name) => `MX 10 ${name}`) },
  { weight: 1, arbitrary: target.map((name) => `SRV 1 2 80 ${name}`) },
  {
    weight: 1,
    arbitrary: fc.constant("DS 12345 13 2 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
  },
);
const singular = fc.oneof(
  { weight: 3, arbitrary: target.map((name) => `CNAME ${name}`) },
  { weight: 1, arbitrary: target.map((name) => `DNAME ${name}`) },
);

const nodes = fc.uniqueArray(
  fc.record({
    owner,
    contents: fc.array(content, { minLength: 1, maxLength: 3 }),
    singular: fc.option(singular, { freq: 4 }),
  }),
  { selector: (node) => node.owner, minLength: 5, maxLength: 25 },
);

const question = fc.record({
  name: fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .array(fc.oneof({ weight: 6, arbitrary: label }, { weight: 1, arbitrary: fc.constant("z") }), {
          maxLength: 5,
        })
        .map((labels) => [...labels, APEX].join(".")),
    },
    { weight: 1, arbitrary: fc.constant(APEX) },
  ),
  type: fc.constantFrom("A", "AAAA", "TXT", "NS", "MX", "SRV", "CNAME", "DNAME", "DS", "SOA"),
});

export const randomZone: fc.Arbitrary<RandomZone> = fc
  .record({ nodes, questions: fc.array(question, { minLength: 150, maxLength: 150 }) })
  .map((zone) => ({ lines: linesOf(zone.nodes), questions: zone.questions }));

/** Rules that every server accepts: nothing beside an alias, nothing below a DNAME, DS only beside NS. */
function linesOf(
  all: readonly {
    readonly owner: string;
    readonly contents: readonly string[];
    readonly singular: string | null;
  }[],
): string[] {
  const lines = [
    "$TTL 60",
    `${APEX} SOA ns.${APEX} h.${APEX} 1 7200 3600 86400 30`,
    `${APEX} NS ns.${APEX}`,
    `${APEX} NS ns.other.test.`,
  ];
  const redirected = all.filter((node) => node.singular?.startsWith("DNAME")).map((node) => node.owner);
  for (const node of all) {
    if (redirected.some((above) => node.owner !== above && node.owner.endsWith(`.${above}`))) continue;
    if (node.singular !== null) {
      lines.push(`${node.owner} ${node.singular}`);
      continue;
    }
    const hasNs = node.contents.some((text) => text.startsWith("NS "));
    for (const text of new Set(node.contents)) {
      if (text.startsWith("DS ") && !hasNs) continue;
      if (hasNs && !/^(NS|DS) /.test(text)) continue;
      if (hasNs && node.owner.startsWith("*.")) continue;
      lines.push(`${node.owner} ${text}`);
    }
  }
  return lines;
}
