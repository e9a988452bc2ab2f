/**
 * Every rule of Kubernetes DNS, put to the running program over UDP and over TCP. The cluster is a folder of manifests, the world
 * outside of it an unbound.
 */
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { type RuleGroup, titleOf } from "../fixtures/kubernetes/rule-case.ts";
import { OUTSIDE, RULE_GROUPS } from "../fixtures/kubernetes/rules.ts";
import { ask, type Server } from "../support/dns-client.ts";
import { absoluteName, askOverTcp, checkReply } from "../support/kubernetes-rules.ts";
import { Peer } from "../support/peers.ts";
import { Portolan } from "../support/portolan.ts";

const cluster = fileURLToPath(new URL("../fixtures/kubernetes", import.meta.url));

/** Groups that need the same configuration share a server block, each block has an address of its own. */
const configurations = new Map<string, { readonly address: string; readonly group: RuleGroup }>();
for (const group of RULE_GROUPS) {
  const key = configurationKey(group);
  if (!configurations.has(key))
    configurations.set(key, { address: `127.0.1.${configurations.size + 1}`, group });
}

function configurationKey({ options, zones = "" }: RuleGroup): string {
  return [zones, ...options].join("\n");
}

function serverBlock(address: string, { options, zones }: RuleGroup, port: number, upstream: number): string {
  return `.:${port} {
    bind ${address}
    errors
    kubernetes ${zones ?? "cluster.local in-addr.arpa ip6.arpa"} {
        manifests ${cluster}
        ${options.join("\n        ")}
    }
    forward . 127.0.0.1:${upstream}
}
`;
}

describe("the Kubernetes DNS specification", { skip: skipWithout("unbound") }, () => {
  let outside: Peer;
  let server: Portolan;

  before(async () => {
    outside = await Peer.unbound(OUTSIDE);
    server = await Portolan.start((port) => {
      const blocks = [...configurations.values()].map(({ address, group }) =>
        serverBlock(address, group, port("dns"), outside.port),
      );
      // The harness looks for an answer at 127.0.0.1.
      return [`.:${port("dns")} {\n    bind 127.0.0.1\n    whoami\n}\n`, ...blocks].join("\n");
    });
  });

  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await outside?.[Symbol.asyncDispose]();
  });

  for (const group of RULE_GROUPS) {
    const address = configurations.get(configurationKey(group))?.address ?? "";
    for (const { name, type, expected } of group.cases) {
      test(`${group.title}: ${titleOf({ name, type, expected })}`, async () => {
        const asked = absoluteName(name);
        const at: Server = { address, port: server.port };
        checkReply(await ask(at, asked, type), asked, expected);
        checkReply(await askOverTcp(at, asked, type), asked, expected);
      });
    }
  }
});
