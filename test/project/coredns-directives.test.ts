/** Each of CoreDNS's directives is a plugin here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";

/** CoreDNS 1.15.0, in the order of its chain. */
const DIRECTIVES =
  "root metadata geoip cancel proxyproto quic grpc_server https https3 timeouts multisocket reload nsid bufsize bind debug trace ready health pprof shed prometheus errors log " +
  "dnstap local dns64 siit any chaos loadbalance tsig rewrite autopath acl cache header dnssec tls minimal template transfer dynupdate hosts route53 azure clouddns k8s_external " +
  "kubernetes file auto secondary etcd loop forward grpc erratic whoami on sign view nomad";

test("each directive of CoreDNS is a plugin here, in the order of its chain", async () => {
  const registry = await PluginRegistry.builtIn();
  const directives = DIRECTIVES.split(" ");
  assert.equal(directives.length, 62);
  const order = registry.entries.map(({ name }) => name).filter((name) => directives.includes(name));
  assert.deepEqual(order, directives);
});
