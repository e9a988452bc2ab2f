/** Each rule: its warnings, and the Corefiles that it must accept. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Directive } from "../corefile/tree.ts";
import { Name } from "../dns/name.ts";
import { EXPRESSION_CASES } from "./fixtures/expression-cases.ts";
import { FALLTHROUGH_CASES } from "./fixtures/fallthrough-cases.ts";
import { LISTENER_CASES } from "./fixtures/listener-cases.ts";
import { type LintCase, SHAPING_CASES } from "./fixtures/shaping-cases.ts";
import { warningsOf } from "./fixtures/warnings.ts";
import { lintRules } from "./lint.ts";

const CASES: Readonly<Record<string, readonly LintCase[]>> = {
  ...SHAPING_CASES,
  ...LISTENER_CASES,
  LINT_PLUGIN_UNUSED: [
    {
      title: "an added plugin without a line in any block",
      corefile: "{\n plugin greet ./greet.ts\n}\n. {\n whoami\n}",
      warnings: [
        "LINT_PLUGIN_UNUSED Corefile:2:9: warning: no server block uses the plugin 'greet': './greet.ts' is not loaded",
      ],
    },
    {
      title: "a plugin used in one of several blocks",
      corefile: "{\n plugin log ./log.ts before cache\n}\n. {\n whoami\n}\nexample.org {\n log\n whoami\n}",
      warnings: [],
    },
    {
      title: "a plugin added twice is named once, and an invalid option not at all",
      corefile: "{\n plugin a ./a.ts\n plugin a ./b.ts\n plugin b\n other c ./c.ts\n}\n. {\n whoami\n}",
      warnings: [
        "LINT_PLUGIN_UNUSED Corefile:2:9: warning: no server block uses the plugin 'a': './a.ts' is not loaded",
      ],
    },
  ],
  LINT_UNREACHABLE: [
    {
      title: "whoami after forward",
      corefile: ". {\n whoami\n forward . 192.0.2.53\n}",
      warnings: [
        "LINT_UNREACHABLE Corefile:2:2: warning: 'whoami' is never reached: 'forward' (Corefile:3:2) answers every query that gets this far",
      ],
    },
    {
      title: "the narrow forward after the wide one",
      corefile: ". {\n forward . 192.0.2.53\n forward example.org 192.0.2.54\n}",
      warnings: [
        "LINT_UNREACHABLE Corefile:3:2: warning: 'forward' is never reached: 'forward' (Corefile:2:2) answers every query that gets this far",
      ],
    },
    {
      title: "the narrow forward before the wide one",
      corefile: ". {\n forward example.org 192.0.2.54\n forward . 192.0.2.53\n}",
      warnings: [],
    },
    {
      title: "names below except are passed on",
      corefile: ". {\n forward . 192.0.2.53 {\n  except example.org\n }\n whoami\n}",
      warnings: [],
    },
    {
      title: "next passes queries only to another forward",
      corefile: ". {\n forward . 192.0.2.53 {\n  next NXDOMAIN\n }\n forward . 192.0.2.54\n whoami\n}",
      warnings: [
        "LINT_UNREACHABLE Corefile:6:2: warning: 'whoami' is never reached: 'forward' (Corefile:2:2) answers every query that gets this far",
      ],
    },
    {
      title: "erratic twice has its own error",
      corefile: ". {\n erratic\n erratic\n}",
      warnings: [],
    },
    {
      title: "whoami after erratic",
      corefile: ". {\n erratic\n whoami\n}",
      warnings: [
        "LINT_UNREACHABLE Corefile:3:2: warning: 'whoami' is never reached: 'erratic' (Corefile:2:2) answers every query that gets this far",
      ],
    },
  ],
  LINT_FALLTHROUGH_MISSING: FALLTHROUGH_CASES,
  LINT_RUN_ORDER: [
    {
      title: "kubernetes is written before hosts, for the same zone",
      corefile:
        ". {\n kubernetes cluster.local {\n  fallthrough\n }\n hosts /etc/hosts cluster.local {\n  fallthrough\n }\n}",
      warnings: [
        "LINT_RUN_ORDER Corefile:2:2: warning: 'hosts' (Corefile:5:2) runs before 'kubernetes', although it is listed after it: its answers win",
      ],
    },
    {
      title: "forward written first could not have been meant to run first",
      corefile: ". {\n forward . 192.0.2.53\n hosts {\n  fallthrough\n }\n}",
      warnings: [],
    },
    {
      title: "zones of different width show the intent",
      corefile:
        ". {\n kubernetes cluster.local {\n  fallthrough\n }\n hosts {\n  fallthrough\n }\n forward . 192.0.2.53\n}",
      warnings: [],
    },
  ],
  LINT_ZONE_SHADOWED: [
    {
      title: "a block of its own takes the cluster's zone",
      corefile: ". {\n kubernetes cluster.local\n forward . 192.0.2.53\n}\ncluster.local {\n whoami\n}",
      warnings: [
        "LINT_ZONE_SHADOWED Corefile:2:13: warning: names in 'cluster.local.' never reach this 'kubernetes': the server block of 'cluster.local.' gets them",
      ],
    },
    {
      title: "another port",
      corefile: ". {\n kubernetes cluster.local\n}\ncluster.local:54 {\n whoami\n}",
      warnings: [],
    },
    {
      title: "a block with a view does not take all",
      corefile: ". {\n kubernetes cluster.local\n}\ncluster.local {\n view\n whoami\n}",
      warnings: [],
    },
    {
      title: "a block below takes only a part",
      corefile: ". {\n forward example.org 192.0.2.53\n}\na.example.org {\n whoami\n}",
      warnings: [],
    },
  ],
  LINT_ZONE_OUTSIDE_BLOCK: [
    {
      title: "forward for a zone of other blocks",
      corefile: "example.org {\n forward example.net 192.0.2.53\n}",
      warnings: [
        "LINT_ZONE_OUTSIDE_BLOCK Corefile:2:10: warning: 'forward' never answers: this server block gets no queries for 'example.net.'",
      ],
    },
    {
      title: "one of several zones",
      corefile: "example.org {\n hosts /etc/hosts example.net example.org 192.0.2.0/24\n}",
      warnings: [
        "LINT_ZONE_OUTSIDE_BLOCK Corefile:2:19: warning: 'hosts' never answers for this zone: this server block gets no queries for 'example.net.'",
        "LINT_ZONE_OUTSIDE_BLOCK Corefile:2:43: warning: 'hosts' never answers for this zone: this server block gets no queries for '2.0.192.in-addr.arpa.'",
      ],
    },
    { title: "a wider zone", corefile: "example.org {\n forward . 192.0.2.53\n}", warnings: [] },
  ],
  LINT_OPTION_WITHOUT_EFFECT: [
    {
      title: "fallthrough for zones that are not served",
      corefile: ". {\n kubernetes cluster.local {\n  fallthrough in-addr.arpa ip6.arpa\n }\n}",
      warnings: [
        "LINT_OPTION_WITHOUT_EFFECT Corefile:3:3: warning: 'fallthrough in-addr.arpa. ip6.arpa.' has no effect: this 'kubernetes' is for cluster.local.",
      ],
    },
    {
      title: "fallthrough with one served zone",
      corefile: ". {\n kubernetes cluster.local 10.0.0.0/8 {\n  fallthrough in-addr.arpa ip6.arpa\n }\n}",
      warnings: [],
    },
    {
      title: "except elsewhere",
      corefile: ". {\n forward example.org 192.0.2.53 {\n  except example.net\n }\n}",
      warnings: [
        "LINT_OPTION_WITHOUT_EFFECT Corefile:3:3: warning: 'except example.net.' has no effect: this 'forward' is for example.org.",
      ],
    },
    {
      title: "health checks that are switched off",
      corefile: ". {\n forward . 192.0.2.53 {\n  max_fails 0\n  health_check 5s\n }\n}",
      warnings: [
        "LINT_OPTION_WITHOUT_EFFECT Corefile:4:3: warning: 'health_check' has no effect: with 'max_fails 0' no upstream is ever checked",
      ],
    },
    {
      title: "next without a later forward",
      corefile: ". {\n forward . 192.0.2.53 {\n  next NXDOMAIN\n }\n}",
      warnings: [
        "LINT_OPTION_WITHOUT_EFFECT Corefile:3:3: warning: 'next' has no effect: no other 'forward' follows",
      ],
    },
  ],
  LINT_FORWARD_LOOP: [
    {
      title: "to loopback, where the block itself listens",
      corefile: ". {\n forward . 127.0.0.1\n}",
      warnings: [
        "LINT_FORWARD_LOOP Corefile:2:12: warning: '127.0.0.1' is this server itself: forwarding '.' to it is a loop",
      ],
    },
    {
      title: "to an address of the machine, of the block's bind, and with a scheme",
      corefile:
        "a.example:1053 {\n forward . dns://192.0.2.10:1053\n}\nb.example:1054 {\n bind 198.51.100.1\n forward . 198.51.100.1:1054\n}",
      warnings: [
        "LINT_FORWARD_LOOP Corefile:2:12: warning: 'dns://192.0.2.10:1053' is this server itself: forwarding 'a.example.' to it is a loop",
        "LINT_FORWARD_LOOP Corefile:6:12: warning: '198.51.100.1:1054' is this server itself: forwarding 'b.example.' to it is a loop",
      ],
    },
    {
      title: "through two blocks",
      corefile: ".:1053 {\n forward . 127.0.0.1:1054\n}\n.:1054 {\n forward . [::1]:1053\n}",
      warnings: [
        "LINT_FORWARD_LOOP Corefile:2:12: warning: '127.0.0.1:1054' is this server itself: forwarding '.' to it is a loop",
        "LINT_FORWARD_LOOP Corefile:5:12: warning: '[::1]:1053' is this server itself: forwarding '.' to it is a loop",
      ],
    },
    {
      title: "to a block of this server that answers",
      corefile: ".:1053 {\n forward . 127.0.0.1:1054\n}\n.:1054 {\n whoami\n}",
      warnings: [],
    },
    {
      title: "to the resolver of Docker",
      corefile: ". {\n forward . 127.0.0.11 /etc/resolv.conf\n}",
      warnings: [],
    },
    {
      title: "to another address, another port, or a block that listens elsewhere",
      corefile:
        ". {\n bind 192.0.2.10\n forward . 127.0.0.1 198.51.100.1 192.0.2.10:54 /etc/resolv.conf dns.example\n}",
      warnings: [],
    },
  ],
  LINT_CLUSTER_MISSING: [
    {
      title: "there is no cluster in the block",
      corefile: ". {\n autopath @kubernetes\n}\ncluster.local {\n kubernetes\n}",
      warnings: [
        "LINT_CLUSTER_MISSING Corefile:2:11: warning: 'autopath' has no 'kubernetes' in its server block: it does nothing",
      ],
    },
    {
      title: "kubernetes without pods verified",
      corefile: ". {\n autopath example.org @kubernetes\n kubernetes cluster.local {\n  pods insecure\n }\n}",
      warnings: [
        "LINT_CLUSTER_MISSING Corefile:2:23: warning: 'autopath' does nothing: without 'pods verified', 'kubernetes' does not know which pod sends a query",
      ],
    },
    {
      title: "with all prerequisites",
      corefile:
        ". {\n autopath @kubernetes\n k8s_external example.org\n kubernetes cluster.local {\n  pods verified\n }\n}",
      warnings: [],
    },
    {
      title: "autopath with a file",
      corefile: ". {\n autopath /etc/resolv.conf\n whoami\n}",
      warnings: [],
    },
  ],
  LINT_ZONE_NOT_MEANT: [
    {
      title: "durations and options",
      corefile: ". {\n cache 1h\n whoami\n}\nexample.org {\n cache 30 denial\n log all\n whoami\n}",
      warnings: [
        "LINT_ZONE_NOT_MEANT Corefile:2:8: warning: '1h' is read as a zone: 'cache' applies only to names in it",
        "LINT_ZONE_NOT_MEANT Corefile:6:11: warning: 'denial' is read as a zone: 'cache' applies only to names in it",
        "LINT_ZONE_NOT_MEANT Corefile:7:6: warning: 'all' is read as a zone: 'log' applies only to names in it",
      ],
    },
    {
      title: "files",
      corefile: ". {\n log stdout\n log / stderr {combined}\n log example.org /var/log/q.log\n whoami\n}",
      warnings: [
        "LINT_ZONE_NOT_MEANT Corefile:2:6: warning: 'stdout' is read as a zone: 'log' applies only to names in it",
        "LINT_ZONE_NOT_MEANT Corefile:3:6: warning: '/' is read as a zone: 'log' applies only to names in it",
        "LINT_ZONE_NOT_MEANT Corefile:3:8: warning: 'stderr' is read as a zone: 'log' applies only to names in it",
        "LINT_ZONE_NOT_MEANT Corefile:4:18: warning: '/var/log/q.log' is read as a zone: 'log' applies only to names in it",
      ],
    },
    {
      title: "zones",
      corefile:
        '. {\n log 0/25.2.0.192.in-addr.arpa stdout.example "/{name}"\n cache 30 example.org 30.in-addr.arpa\n log error.example {\n  class error\n }\n whoami\n}',
      warnings: [],
    },
  ],
  LINT_UPSTREAM_TWICE: [
    {
      title: "over QUIC, with and without the usual port; over TLS it is another one",
      corefile: ". {\n forward . quic://192.0.2.1 tls://192.0.2.1 quic://192.0.2.1:853\n}",
      warnings: [
        "LINT_UPSTREAM_TWICE Corefile:2:45: warning: 'quic://192.0.2.1:853' is already in this 'forward': it counts once",
      ],
    },
    {
      title: "in two spellings",
      corefile: ". {\n forward . 192.0.2.1 2001:db8::1 dns://192.0.2.1:53 [2001:db8:0::1]:53\n}",
      warnings: [
        "LINT_UPSTREAM_TWICE Corefile:2:34: warning: 'dns://192.0.2.1:53' is already in this 'forward': it counts once",
        "LINT_UPSTREAM_TWICE Corefile:2:53: warning: '[2001:db8:0::1]:53' is already in this 'forward': it counts once",
      ],
    },
    {
      title: "over two protocols, at two ports, and in two directives",
      corefile:
        ". {\n forward . 192.0.2.1 tls://192.0.2.1 192.0.2.1:54 /etc/resolv.conf {\n  next SERVFAIL\n }\n forward . 192.0.2.1\n}",
      warnings: [],
    },
  ],
  ...EXPRESSION_CASES,
};

for (const { code } of lintRules) {
  describe(code, () => {
    for (const { title, corefile, warnings } of CASES[code] ?? [])
      it(title, () => assert.deepEqual(warningsOf(corefile), warnings));
    it("has a case with a warning, and one without", () => {
      const outcomes = new Set((CASES[code] ?? []).map(({ warnings }) => warnings.length > 0));
      assert.equal(outcomes.size, 2);
    });
  });
}

describe("lint", () => {
  it("does not compare thousands of zones with each other", () => {
    assert.deepEqual(
      warningsOf("a.example:10000-10099 10.0.0.0/9:10000-10099 {\n hosts\n forward . 192.0.2.53\n}"),
      [],
    );
  });

  it("accepts the Corefile of most clusters", () => {
    const corefile = `.:53 {
      log
      kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
      }
      forward . /etc/resolv.conf {
        max_concurrent 1000
      }
      cache 30
      loop
    }`;
    assert.deepEqual(warningsOf(corefile), []);
  });

  it("accepts the Corefile of a node-local cache", () => {
    const block = (zone: string, upstream: string) =>
      `${zone}:53 {\n cache 30\n bind 169.254.20.10 10.96.0.10\n loop\n forward . ${upstream} {\n force_tcp\n }\n}\n`;
    const zones = ["cluster.local", "in-addr.arpa", "ip6.arpa"].map((zone) => block(zone, "10.96.7.7"));
    assert.deepEqual(warningsOf(zones.join("") + block(".", "/etc/resolv.conf")), []);
  });

  it("accepts the Corefile of k3s, with hosts after kubernetes", () => {
    const corefile = `.:53 {
      kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
      }
      hosts /etc/coredns/NodeHosts {
        ttl 60
        reload 15s
        fallthrough
      }
      forward . /etc/resolv.conf
      cache 30
      loop
    }`;
    assert.deepEqual(warningsOf(corefile), []);
  });
});

describe("an added plugin that declares the zones it answers for", () => {
  const corefile = ". {\n greet example.org\n file db example.org\n whoami\n}";

  it("makes the plugins after it unreachable, as built-in ones do", () => {
    const greet = { name: "greet", claims: ({ args }: Directive) => ({ zones: args }) };
    assert.deepEqual(warningsOf(corefile, [greet]), [
      "LINT_UNREACHABLE Corefile:3:2: warning: 'file' is never reached: 'greet' (Corefile:2:2) answers every query that gets this far",
    ]);
  });

  it("lets names go on by its own fallthrough, and by declaring nothing", () => {
    const greet = {
      name: "greet",
      claims: ({ args }: Directive) => ({ zones: args, passesOn: [Name.root] }),
    };
    assert.deepEqual(warningsOf(corefile, [greet]), []);
    assert.deepEqual(warningsOf(corefile, [{ name: "greet" }]), []);
  });
});
