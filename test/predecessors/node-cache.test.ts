/** `portolan node-cache` in networks of its own: a client, a node, and the cluster behind it. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { skipWithout, TOOL_PATH } from "../../scripts/lib/system-tools.mjs";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { portolanWords, runPortolan } from "../support/portolan.ts";
import { Program, run } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

const whyNot = async (): Promise<string | false> => {
  return skipWithout("dig", "nft", "iptables", "curl") || ((await NetworkNamespace.whyNot()) ?? false);
};
const LOCAL = "169.254.20.10";
const SERVICE = "10.96.0.10";
const BACKEND = "10.99.0.2";
const skip = await whyNot();

const TEMPLATE = `cluster.local:53 {
    errors
    cache {
        success 9984 30
        denial 9984 5
    }
    bind __PILLAR__LOCAL__DNS__
    forward . __PILLAR__CLUSTER__DNS__ {
        force_tcp
    }
    prometheus 127.0.0.1:9253
    health ${LOCAL}:8080
}
.:53 {
    errors
    bind __PILLAR__LOCAL__DNS__
    forward . __PILLAR__UPSTREAM__SERVERS__ {
        force_tcp
    }
}
`;

/** A node, with a pod that asks, and the cluster's own DNS behind a service address that the node translates. */
class Network implements AsyncDisposable {
  readonly node: NetworkNamespace;
  readonly pod: NetworkNamespace;
  readonly cluster: NetworkNamespace;
  readonly folder: string;
  readonly programs: Program[] = [];

  private constructor(node: NetworkNamespace, pod: NetworkNamespace, cluster: NetworkNamespace) {
    this.node = node;
    this.pod = pod;
    this.cluster = cluster;
    this.folder = mkdtempSync(join(tmpdir(), "portolan-node-cache-"));
  }

  static async make(): Promise<Network> {
    const node = await NetworkNamespace.make();
    const pod = await NetworkNamespace.make(node);
    const cluster = await NetworkNamespace.make(node);
    const network = new Network(node, pod, cluster);
    for (const [other, name, own, peer] of [
      [pod, "pod0", "10.98.0.1", "10.98.0.2"],
      [cluster, "cluster0", "10.99.0.1", BACKEND],
    ] as const) {
      await node.ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", String(other.pid));
      await node.ip("addr", "add", `${own}/24`, "dev", name);
      await node.ip("link", "set", name, "up");
      await other.ip("addr", "add", `${peer}/24`, "dev", "eth0");
      await other.ip("link", "set", "eth0", "up");
      await other.ip("route", "add", "default", "via", own);
    }
    await node.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward");
    // As kube-proxy does.
    const translate = [
      "table ip proxy {",
      ` chain pre { type nat hook prerouting priority -100; ip daddr ${SERVICE} udp dport 53 dnat to ${BACKEND}; ip daddr ${SERVICE} tcp dport 53 dnat to ${BACKEND}; }`,
      " chain post { type nat hook postrouting priority 100; oifname cluster0 masquerade; }",
      "}",
    ];
    writeFileSync(join(network.folder, "proxy.nft"), translate.join("\n"));
    await node.run("/usr/sbin/nft", "-f", join(network.folder, "proxy.nft"));
    const backend = `.:53 {
      hosts {
        10.0.0.10 web.default.svc.cluster.local
        192.0.2.9 widget.example
      }
    }`;
    writeFileSync(join(network.folder, "Backend"), backend);
    const [command = "", ...words] = cluster.words(
      ...portolanWords("-conf", join(network.folder, "Backend")),
    );
    network.programs.push(new Program(command, words, { env: { PATH: TOOL_PATH } }));
    return network;
  }

  /** The short output of dig, run in the pod. */
  async ask(address: string, name = "web.default.svc.cluster.local"): Promise<string> {
    const [command = "", ...words] = this.pod.words(
      "dig",
      `@${address}`,
      "+short",
      "+tries=1",
      "+time=2",
      name,
    );
    return (await run(command, words)).output;
  }

  /** From now on counts what leaves the node for the cluster's DNS, by protocol. */
  async countPackets(): Promise<void> {
    const rules = ["udp", "tcp"].map((protocol) => `oifname cluster0 ${protocol} dport 53 counter;`);
    const chain = `chain out { type filter hook postrouting priority 0; ${rules.join(" ")} }`;
    writeFileSync(join(this.folder, "wire.nft"), `table inet wire {\n ${chain}\n}\n`);
    await this.node.run("/usr/sbin/nft", "-f", join(this.folder, "wire.nft"));
  }

  /** One that asks without end. @returns what stops it, and how many queries had no answer */
  async asking(address: string): Promise<() => Promise<{ asked: number; lost: number }>> {
    let isOver = false;
    let asked = 0;
    let lost = 0;
    const loop = (async () => {
      while (!isOver) {
        asked++;
        if (!(await this.ask(address)).includes("10.0.0.10")) lost++;
      }
    })();
    return async () => {
      isOver = true;
      await loop;
      return { asked, lost };
    };
  }

  async start(...more: readonly string[]): Promise<Program> {
    const { folder } = this;
    const [command = "", ...words] = this.node.words(
      ...portolanWords(
        "node-cache",
        "-localip",
        `${LOCAL},${SERVICE}`,
        "-conf",
        join(folder, "Corefile"),
        "-basecorefile",
        join(folder, "base", "Corefile.base"),
        "-kubednscm",
        join(folder, "cm"),
        "-upstreamsvc",
        "kube-dns-upstream",
        "-reloadwithsignal",
        "-syncinterval",
        "3",
        ...more,
      ),
    );
    const program = new Program(command, words, {
      env: { PATH: TOOL_PATH, KUBE_DNS_UPSTREAM_SERVICE_HOST: BACKEND },
    });
    this.programs.push(program);
    return program;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const program of this.programs) await program[Symbol.asyncDispose]();
    for (const namespace of [this.cluster, this.pod, this.node]) await namespace[Symbol.asyncDispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

test("node-cache answers for its node, hands over, and blocks no client when it is killed", {
  skip,
}, async () => {
  await using network = await Network.make();
  const { node, folder } = network;
  await untilTrue(async () => (await network.ask(SERVICE)).includes("10.0.0.10"));
  await run("mkdir", ["-p", join(folder, "base"), join(folder, "cm")]);
  writeFileSync(join(folder, "base", "Corefile.base"), TEMPLATE);
  writeFileSync(join(folder, "cm", "upstreamNameservers"), JSON.stringify([BACKEND]));
  writeFileSync(join(folder, "cm", "stubDomains"), JSON.stringify({ "acme.local": [`${BACKEND}:53`] }));
  const finish = await network.asking(SERVICE);
  const first = await network.start();
  const caught = async (): Promise<boolean> =>
    (
      await node.run("sh", "-c", "/usr/sbin/nft list set inet portolan_node_cache local 2>/dev/null || true")
    ).includes(SERVICE);
  await untilTrue(caught);
  assert.match(await network.ask(SERVICE), /10\.0\.0\.10/);
  await network.countPackets();
  assert.equal(await network.ask(SERVICE, "nosuch.default.svc.cluster.local"), "");
  const wire = await node.run("/usr/sbin/nft", "list", "table", "inet", "wire");
  assert.match(wire, /udp dport 53 counter packets 0 /, "the cluster is asked over TCP alone");
  assert.match(wire, /tcp dport 53 counter packets [1-9]/);
  assert.match(await network.ask(SERVICE, "widget.example"), /192\.0\.2\.9/);
  const corefile = readFileSync(join(folder, "Corefile"), "utf8");
  assert.match(
    corefile,
    new RegExp(`^    forward \\. ${BACKEND}$`, "m"),
    "upstreams of one's own are asked over UDP",
  );
  assert.match(corefile, /^acme\.local:53 \{$/m);
  assert.doesNotMatch(corefile, /__PILLAR__/);
  const link = await node.ip("-d", "address", "show", "dev", "nodelocaldns");
  assert.match(link, /inet 10\.96\.0\.10\/32 .*\n\s+valid_lft \dsec/);
  assert.match(
    await node.run("/usr/sbin/iptables-save"),
    /-A INPUT -d 169\.254\.20\.10\/32 -p udp .*NodeLocal DNS Cache: allow DNS traffic.* -j ACCEPT/,
  );
  const metrics = await node.run("curl", "-s", "http://127.0.0.1:9353/metrics");
  for (const type of ["iptables", "iptables_lock", "interface_add", "interface_check", "configmap"])
    assert.match(
      metrics,
      new RegExp(`^coredns_nodecache_setup_errors_total\\{errortype="${type}"\\} 0$`, "m"),
    );
  assert.match(await node.run("curl", "-s", `http://${LOCAL}:8080/health`), /OK/);
  const hits = await node.run("curl", "-s", "http://127.0.0.1:9253/metrics");
  assert.match(hits, /coredns_cache_hits_total\{.*type="success".*\} [1-9]/);

  // The next instance answers beside the first, and takes over. No other server answers on the node's own address.
  const finishLocal = await network.asking(LOCAL);
  const second = await network.start();
  await untilTrue(async () => /node\d/.test(second.output));
  assert.deepEqual(await first.stop(), { code: 0, signal: null }, first.errors);
  await untilTrue(caught);
  assert.match(await network.ask(LOCAL), /10\.0\.0\.10/);
  for (const { asked, lost } of [await finish(), await finishLocal()]) {
    assert.ok(asked > 10);
    assert.equal(lost, 0, `of ${asked}\n${first.errors}${second.errors}`);
  }

  // Killed: no instance renews, and the cluster's server is queried again.
  second.kill("SIGKILL");
  await second.ended;
  await untilTrue(async () => (await network.ask(SERVICE)).includes("10.0.0.10"), { milliseconds: 45_000 });
  assert.equal(await caught(), false);
  await untilTrue(async () => !/inet /.test(await node.ip("address", "show", "dev", "nodelocaldns")));

  // The one after that clears up behind itself.
  const third = await network.start();
  await untilTrue(caught);
  assert.deepEqual(await third.stop(), { code: 0, signal: null }, third.errors);
  assert.doesNotMatch(await node.ip("link", "show"), /nodelocaldns/);
  assert.doesNotMatch(await node.run("/usr/sbin/nft", "list", "tables"), /portolan/);
  assert.doesNotMatch(await node.run("/usr/sbin/iptables-save"), /NodeLocal/);
});

test("node-cache answers on IPv6 addresses at once", { skip }, async () => {
  await using node = await NetworkNamespace.make();
  const folder = mkdtempSync(join(tmpdir(), "portolan-node-cache-"));
  const template = `.:53 {
    bind __PILLAR__LOCAL__DNS__
    hosts {
        192.0.2.9 widget.example
    }
    health [fd00::10]:8080
}
`;
  writeFileSync(join(folder, "Corefile.base"), template);
  const [command = "", ...words] = node.words(
    ...portolanWords("node-cache", "-localip", "fd00::10", "-conf", join(folder, "Corefile")),
    ...["-basecorefile", join(folder, "Corefile.base"), "-kubednscm", "", "-syncinterval", "3"],
  );
  await using program = new Program(command, words, { env: { PATH: TOOL_PATH } });
  await untilTrue(async () => /node\d/.test(program.output) || program.hasEnded);
  assert.match(
    await node.run("dig", "@fd00::10", "+short", "widget.example"),
    /192\.0\.2\.9/,
    program.errors,
  );
  assert.deepEqual(await program.stop(), { code: 0, signal: null }, program.errors);
  assert.doesNotMatch(await node.ip("link", "show"), /nodelocaldns/);
  rmSync(folder, { recursive: true });
});

for (const [words, message] of [
  [[], /^invalid localip specified - ""\n$/],
  [["-localip", "nowhere"], /^invalid localip specified - "nowhere"\n$/],
  [
    ["-localip", "1.2.3.4,::1"],
    /^unexpected mix of IPv4 and IPv6 addresses in localip - "1\.2\.3\.4,::1"\n$/,
  ],
] as const) {
  test(`node-cache ${words.join(" ")} says what is wrong`, async () => {
    const ending = await runPortolan(["node-cache", ...words]);
    assert.equal(ending.code, 1);
    assert.match(ending.errors, message);
  });
}
