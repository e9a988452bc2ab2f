/** Cached hits behind plugins that change queries or turn them away. */
import { EXTERNAL_ADDRESSES, EXTERNAL_ZONE, externalName, SINKHOLE_ADDRESS, SINKHOLE_ZONE } from "./names.ts";
import type { Queries, Workload } from "./workload.ts";

/** Names below it become those without it. */
const ALIAS_LABEL = "alias";
const NETWORKS = [1, 1_000, 100_000];

/** @param hits what is asked for behind `acl`: the same as without it */
export function shapingWorkloads(hits: Queries): Workload[] {
  const pattern = `^(.*)\\.${ALIAS_LABEL}\\.${EXTERNAL_ZONE.replaceAll(".", "\\.")}\\.$`;
  return [
    {
      ...aliasHits(1),
      name: "rewrite-exact",
      title: "Cached hits behind an exact rewrite",
      about: "UDP, one name, which a rule replaces with a cached one",
      load: "udp",
      hasFloor: true,
      directives: [`rewrite name ${aliasName(0)} ${externalName(0)}`],
    },
    {
      ...aliasHits(1_000),
      name: "rewrite-regex",
      title: "Cached hits behind a rewrite by expression",
      about: "UDP, 1,000 names in turn, which a rule with an expression replaces with cached ones",
      load: "udp",
      hasFloor: true,
      directives: [`rewrite name regex ${pattern} {1}.${EXTERNAL_ZONE} answer auto`],
    },
    {
      ...sinkholeQueries(1_000),
      name: "template",
      title: "Answers of a template",
      about: "UDP, 1,000 names in turn below a zone whose answers a template makes; no cache",
      load: "udp",
      hasFloor: true,
      directives: [
        `template IN A ${SINKHOLE_ZONE} {\n        answer "{{ .Name }} 60 IN A ${SINKHOLE_ADDRESS}"\n    }`,
      ],
    },
    {
      ...hits,
      name: "limit",
      title: "Cached hits behind limit",
      about: "UDP, 1,000 cached names drawn after Zipf's law; the client stays below its limit",
      load: "udp",
      hasFloor: true,
      directives: ["limit {\n        all 1000000\n    }"],
      besides: [{ workload: "cached-1k" }],
    },
    ...NETWORKS.map(
      (count): Workload => ({
        ...hits,
        name: `acl-${count}`,
        title: `Cached hits behind ${count.toLocaleString("en")} ${count === 1 ? "network" : "networks"} of acl`,
        about: "UDP, 1,000 cached names drawn after Zipf's law; the client is in none of the networks",
        load: "udp",
        hasFloor: true,
        directives: [`acl {\n        block net ${networks(count).join(" ")}\n    }`],
      }),
    ),
  ];
}

function aliasName(index: number): string {
  return externalName(index).replace(`.${EXTERNAL_ZONE}`, `.${ALIAS_LABEL}.${EXTERNAL_ZONE}`);
}

function aliasHits(names: number): Queries {
  const addresses = [EXTERNAL_ADDRESSES.A];
  return {
    cacheEntries: 10_000,
    usesUpstream: false,
    needsNewNames: false,
    rcodes: ["NOERROR"],
    checks: [{ name: aliasName(0), type: "A", rcode: "NOERROR", addresses }],
    *queries() {
      for (let index = 0; index < names; index++) yield `${aliasName(index)} A`;
    },
  };
}

function sinkholeQueries(names: number): Queries {
  return {
    cacheEntries: 0,
    usesUpstream: false,
    needsNewNames: false,
    rcodes: ["NOERROR"],
    checks: [
      { name: `checked.${SINKHOLE_ZONE}`, type: "A", rcode: "NOERROR", addresses: [SINKHOLE_ADDRESS] },
    ],
    *queries() {
      for (let index = 0; index < names; index++) yield `host-${index}.${SINKHOLE_ZONE} A`;
    },
  };
}

/** Networks in 10.0.0.0/8 and above: no client of the load is in one of them. */
function networks(count: number): string[] {
  return Array.from(
    { length: count },
    (_, index) => `${10 + (index >> 14)}.${(index >> 6) & 0xff}.${(index & 63) << 2}.0/24`,
  );
}
