import type { CorefileSource } from "../../server/configuration/configuration.ts";

/** The ConfigMap `coredns` of AKS, which imports `coredns-custom`. Other providers import it at the same two places. */
export const AKS_COREFILE: CorefileSource = {
  file: "Corefile of AKS",
  text: `.:53 {
    errors
    ready
    health {
        lameduck 5s
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
    import custom/*.override
    template ANY ANY internal.cloudapp.net {
        match "^(?:[^.]+\\.){4,}internal\\.cloudapp\\.net\\.$"
        rcode NXDOMAIN
        fallthrough
    }
    template ANY ANY reddog.microsoft.com {
        rcode NXDOMAIN
    }
}
import custom/*.server
`,
};
