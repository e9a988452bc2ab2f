/**
 * Answers of other plugins that lead to a name of the cluster follow its changes, although the cache keeps them for five minutes: the alias has a name of its
 * own, and the Service changes under another one.
 */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Change } from "../fixtures/kubernetes/changes.ts";
import { CHANGING_CLUSTERS, type ChangingCluster, service, slice } from "../support/changing-cluster.ts";
import { checkChange } from "../support/kubernetes-changes.ts";
import { askOverTcp, summaryOf, summaryWanted, untilSynced } from "../support/kubernetes-rules.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const ZONE_FILE = `$ORIGIN zone.test.
@ 300 IN SOA ns hostmaster 1 3600 600 86400 60
@ 300 IN NS ns
ns 300 IN A 192.0.2.53
*.wild 300 IN CNAME wild.default.svc.cluster.local.
filed 300 IN CNAME filed.default.svc.cluster.local.
all 300 IN DNAME default.svc.cluster.local.
`;

function corefile(source: string, dns: number | string, options: string, threads = 1): string {
  const template = (zone: string, target: string) =>
    `  template IN ANY ${zone} {
    match "^(.*[.])?(?P<label>[a-z]+)[.]${zone}[.]$"
    answer "{{ .Name }} 300 IN CNAME {{ .Group.label }}.${target}."
  }`;
  const sockets = threads > 1 ? `multisocket ${threads}` : "";
  return `.:${dns} {
  bind 127.0.0.1
  ${sockets}
  cache {
    success 9984 300
    denial 9984 300
    ${options}
  }
  rewrite cname suffix .old.test. .default.svc.cluster.local.
${template("moved.test", "old.test")}
${template("tpl.test", "default.svc.cluster.local")}
${template("hop.test", "tpl.test")}
${template("hops.test", "hop.test")}
  file zone.test zone.test
  kubernetes cluster.local {
    ${source}
    ttl 300
  }
}
other.test:${dns} {
  bind 127.0.0.1
  ${sockets}
  cache 300
${template("other.test", "default.svc.cluster.local")}
}
`;
}

interface Alias {
  readonly title: string;
  readonly asked: string;
  /** The Service that it leads to. */
  readonly name: string;
  /** CNAME records before the last one, which leads to the Service. */
  readonly chain?: readonly string[];
  /** The owner of the last one, the name asked unless given. */
  readonly owner?: string;
  /** While there is no Service: that of the target, unless the plugin that made the alias has an rcode of its own. */
  readonly denial?: "NOERROR";
}

const ALIASES: readonly Alias[] = [
  { title: "a template", asked: "made.tpl.test.", name: "made", denial: "NOERROR" },
  {
    title: "a template, for a name of many labels",
    asked: "any.thing.below.tpl.test.",
    name: "below",
    denial: "NOERROR",
  },
  {
    title: "three templates in a row",
    asked: "far.hops.test.",
    name: "far",
    chain: ["CNAME far.hop.test.", "far.hop.test. CNAME far.tpl.test."],
    owner: "far.tpl.test. ",
    denial: "NOERROR",
  },
  { title: "rewrite cname", asked: "moved.moved.test.", name: "moved", denial: "NOERROR" },
  { title: "a zone file", asked: "filed.zone.test.", name: "filed" },
  { title: "a wildcard of a zone file", asked: "star.wild.zone.test.", name: "wild" },
  {
    title: "a DNAME record",
    asked: "tree.all.zone.test.",
    name: "tree",
    chain: ["all.zone.test. DNAME default.svc"],
  },
  {
    title: "a template in another server block",
    asked: "across.other.test.",
    name: "across",
    denial: "NOERROR",
  },
];

/** A Service comes, gets another address, and goes, behind an alias that is cached each time. */
function changeOf({ title, asked, name, chain = [], owner = "", denial }: Alias): Change {
  const aliases = [...chain, `${owner}CNAME ${name}.default.svc`];
  const denied =
    denial === "NOERROR" ? aliases : ({ rcode: "NXDOMAIN", answer: aliases, additional: [] } as const);
  const withAddress = (address: string) => [...aliases, `${name}.default.svc A ${address}`];
  return {
    rules: [],
    title,
    given: [],
    steps: [
      { put: [service(name, { clusterIP: "10.96.7.1" })] },
      { put: [service(name, { clusterIP: "10.96.7.2" })] },
      { remove: [service(name, {})] },
    ],
    questions: [
      {
        name: asked,
        type: "A",
        expected: [denied, withAddress("10.96.7.1"), withAddress("10.96.7.2"), denied],
      },
    ],
  };
}

const POD_BEHIND_AN_ALIAS: Change = {
  rules: [],
  title: "a template, to a headless Service whose pods change",
  given: [
    service("pods", { clusterIP: "None" }),
    slice("pods", [{ addresses: ["10.1.0.1"], hostname: "one", conditions: { ready: true } }]),
  ],
  steps: [
    { put: [slice("pods", [{ addresses: ["10.1.0.2"], hostname: "one", conditions: { ready: true } }])] },
  ],
  questions: [
    {
      name: "pods.tpl.test.",
      type: "A",
      expected: [
        ["CNAME pods.default.svc", "pods.default.svc A 10.1.0.1"],
        ["CNAME pods.default.svc", "pods.default.svc A 10.1.0.2"],
      ],
    },
  ],
};

for (const [kind, options] of [
  ["a plain cache", ""],
  ["a cache with serve_stale and prefetch", "serve_stale 1h\n    prefetch 1 1m 90%"],
] as const) {
  for (const [source, startCluster] of CHANGING_CLUSTERS) {
    describe(`behind ${kind} a change over ${source} shows at once through`, { concurrency: true }, () => {
      let cluster: ChangingCluster;
      let program: Portolan;

      before(async () => {
        cluster = await startCluster();
        for (const object of POD_BEHIND_AN_ALIAS.given) cluster.put(object);
        program = await Portolan.start((port) => corefile(cluster.source, port("dns"), options), {
          files: { "zone.test": ZONE_FILE },
        });
        await untilSynced(program);
      });

      after(async () => {
        await program?.[Symbol.asyncDispose]();
        await cluster?.[Symbol.asyncDispose]();
      });

      for (const change of [...ALIASES.map(changeOf), POD_BEHIND_AN_ALIAS])
        it(change.title, () => checkChange(change, cluster, program));
    });
  }
}

it("a change shows at once through an alias on all threads, which share one cache", async () => {
  const [, startCluster] = CHANGING_CLUSTERS[0] ?? assert.fail();
  await using cluster = await startCluster();
  cluster.put(service("made", { clusterIP: "10.96.7.1" }));
  await using program = await Portolan.start((port) => corefile(cluster.source, port("dns"), "", 3), {
    files: { "zone.test": ZONE_FILE },
  });
  await untilSynced(program);
  const asked = "made.tpl.test.";
  /** Each connection may come to another thread. */
  const untilAllSay = (address: string): Promise<void> => {
    const wanted = summaryWanted(["CNAME made.default.svc", `made.default.svc A ${address}`]);
    return untilTrue(async () => {
      for (let count = 0; count < 30; count++)
        if (summaryOf(await askOverTcp(program, asked, "A"), asked) !== wanted) return false;
      return true;
    });
  };
  await untilAllSay("10.96.7.1");
  for (let change = 2; change < 8; change++) {
    cluster.put(service("made", { clusterIP: `10.96.7.${change}` }));
    await untilAllSay(`10.96.7.${change}`);
  }
});
