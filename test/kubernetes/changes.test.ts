/**
 * What changes in a cluster shows in the next answers, although the cache keeps answers for half a minute: under the names in the
 * cluster, of addresses, outside of the cluster and in a zone of several clusters. Until then answers are the old ones, and never a mixture.
 */
import { after, before, describe, it } from "node:test";
import { CHANGES } from "../fixtures/kubernetes/changes.ts";
import { CHANGING_CLUSTERS, type ChangingCluster } from "../support/changing-cluster.ts";
import { checkChange } from "../support/kubernetes-changes.ts";
import { OutsideWorld, untilSynced } from "../support/kubernetes-rules.ts";
import { Portolan } from "../support/portolan.ts";

for (const [title, startCluster] of CHANGING_CLUSTERS) {
  // At the same time, as a folder is looked at every other second.
  describe(`behind a cache of half a minute the next answer is right over ${title} after`, {
    concurrency: true,
  }, () => {
    let cluster: ChangingCluster;
    let outside: OutsideWorld;
    let program: Portolan;

    before(async () => {
      cluster = await startCluster();
      for (const { given } of CHANGES) for (const object of given) cluster.put(object);
      outside = await OutsideWorld.start();
      program = await Portolan.start((port) =>
        [
          `.:${port("dns")} {`,
          "  bind 127.0.0.1",
          "  cache 30",
          "  k8s_external example.org 192.0.2.0/24 {\n    ttl 30\n  }",
          "  kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {",
          `    ${cluster.source}`,
          "    multicluster clusterset.local",
          "    ttl 30",
          "  }",
          `  forward . 127.0.0.1:${outside.port} {\n    prefer_udp\n  }`,
          "}",
        ].join("\n"),
      );
      await untilSynced(program);
    });

    after(async () => {
      await program?.[Symbol.asyncDispose]();
      await outside?.[Symbol.asyncDispose]();
      await cluster?.[Symbol.asyncDispose]();
    });

    for (const change of CHANGES) {
      it(change.title, () => checkChange(change, cluster, program));
    }
  });
}
