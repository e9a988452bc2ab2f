/** `check -strict` is content with the Corefiles that distributions install. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { runPortolan } from "../support/portolan.ts";

const kubernetes = (lines: string) => `    kubernetes cluster.local in-addr.arpa ip6.arpa {\n${lines}\n    }`;
const usual = kubernetes("        pods insecure\n        fallthrough in-addr.arpa ip6.arpa\n        ttl 30");
const health = "    health {\n        lameduck 5s\n    }\n    ready";
const tail = "    cache 30\n    loop\n    reload\n    loadbalance";
const forward = "    forward . /etc/resolv.conf {\n        max_concurrent 1000\n    }";

const nodeLocal = (zone: string, cache: string, upstream: string, more = "") =>
  `${zone}:53 {\n    errors\n    ${cache}\n    reload\n    loop\n    bind 169.254.20.10 10.96.0.10\n    forward . ${upstream}\n    prometheus :9253\n${more}}\n`;
const clusterUpstream = "10.96.7.7 {\n        force_tcp\n    }";
const clusterCache = "cache {\n        success 9984 30\n        denial 9984 5\n    }";

const COREFILES: Readonly<Record<string, string>> = {
  kubeadm: `.:53 {\n    errors\n${health}\n${usual}\n    prometheus :9153\n${forward}\n    cache 30 {\n        disable success cluster.local\n        disable denial cluster.local\n    }\n    loop\n    reload\n    loadbalance\n}\n`,
  k3s: `.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    hosts /etc/coredns/NodeHosts {
        ttl 60
        reload 15s
        fallthrough
    }
    prometheus :9153
    cache 30
    loop
    reload
    loadbalance
    import /etc/coredns/custom/*.override
    forward . /etc/resolv.conf
}
import /etc/coredns/custom/*.server
`,
  kops: `.:53 {\n    errors\n${health}\n    kubernetes cluster.local. in-addr.arpa ip6.arpa {\n        pods insecure\n        fallthrough in-addr.arpa ip6.arpa\n        ttl 30\n    }\n    prometheus :9153\n${forward}\n    loop\n    cache 30\n    loadbalance\n    reload\n}\n`,
  kubespray: `.:53 {\n    errors {\n    }\n${health}\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n        pods insecure\n        fallthrough in-addr.arpa ip6.arpa\n    }\n    prometheus :9153\n    forward . /etc/resolv.conf {\n        prefer_udp\n        max_concurrent 1000\n    }\n${tail}\n}\n`,
  AKS: `.:53 {\n    errors\n    ready\n    health {\n        lameduck 5s\n    }\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n        pods insecure\n        fallthrough in-addr.arpa ip6.arpa\n        ttl 30\n    }\n    prometheus :9153\n    forward . /etc/resolv.conf\n${tail}\n    import custom/*.override\n    template ANY ANY internal.cloudapp.net {\n        match "^(?:[^.]+\\.){4,}internal\\.cloudapp\\.net\\.$"\n        rcode NXDOMAIN\n        fallthrough\n    }\n    template ANY ANY reddog.microsoft.com {\n        rcode NXDOMAIN\n    }\n}\nimport custom/*.server\n`,
  EKS: `.:53 {\n    errors\n    health {\n        lameduck 5s\n    }\n    ready\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n        pods insecure\n        fallthrough in-addr.arpa ip6.arpa\n    }\n    prometheus :9153\n    forward . /etc/resolv.conf\n${tail}\n}\n`,
  RKE2: `.:53 {\n    errors \n    health  {\n        lameduck 10s\n    }\n    ready \n    kubernetes   cluster.local  cluster.local in-addr.arpa ip6.arpa {\n        pods insecure\n        fallthrough in-addr.arpa ip6.arpa\n        ttl 30\n    }\n    prometheus   0.0.0.0:9153\n    forward   . /etc/resolv.conf\n    cache   30\n    loop \n    reload \n    loadbalance \n}\n`,
  "NodeLocal DNSCache": [
    nodeLocal("cluster.local", clusterCache, clusterUpstream, "    health 169.254.20.10:8080\n"),
    nodeLocal("in-addr.arpa", "cache 30", clusterUpstream),
    nodeLocal("ip6.arpa", "cache 30", clusterUpstream),
    nodeLocal(".", "cache 30", "/etc/resolv.conf"),
  ].join(""),
};

for (const [name, corefile] of Object.entries(COREFILES)) {
  test(`the Corefile of ${name}`, async (t) => {
    const cwd = makeTree(t, { Corefile: corefile });
    const { code, output } = await runPortolan(["check", "-strict", "-no-files"], { cwd });
    assert.deepEqual([code, output], [0, "Corefile: no faults\n"]);
  });
}
