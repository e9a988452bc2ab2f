import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { Name } from "../../dns/name.ts";
import { Rcode, rcodeName } from "../../dns/numbers.ts";
import { type Next, type Outcome, ZoneList } from "../../plugin/index.ts";
import {
  Answer,
  makeTestQuery,
  PluginTest,
  type PluginTestOptions,
  type QuestionOptions,
  records,
  recordText,
} from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const fixture = fileURLToPath(new URL("../../../test/fixtures/kubernetes", import.meta.url));
const ZONES = "cluster.local in-addr.arpa ip6.arpa";

function make(options: string[], zones = ZONES, test: PluginTestOptions = {}) {
  return PluginTest.of(kubernetes, `kubernetes ${zones} {\n${options.join("\n")}\n}`, test);
}

describe("kubernetes", () => {
  const started: { stop(): Promise<void> }[] = [];
  const folders: string[] = [];

  afterEach(async () => {
    for (const plugin of started.splice(0)) await plugin.stop();
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
  });

  async function start(options: string[] = [], zones = ZONES, test: PluginTestOptions = {}) {
    const plugin = make([`manifests ${fixture}`, ...options], zones, test);
    started.push(plugin);
    await plugin.start();
    return plugin;
  }

  async function manifest(text: string): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "portolan-kubernetes-"));
    folders.push(folder);
    await writeFile(join(folder, "shop.yaml"), text);
    return folder;
  }

  function serviceYaml(name: string, spec: string): string {
    return `---\napiVersion: v1\nkind: Service\nmetadata: { name: ${name}, namespace: shop }\nspec: ${spec}\n`;
  }

  describe("asks elsewhere for external names", () => {
    async function askExternal(question: QuestionOptions, elsewhere: Next): Promise<Outcome> {
      const plugin = await start();
      return plugin.chain(elsewhere)(makeTestQuery(question, 0, plugin.chain(elsewhere)));
    }

    const ext = { name: "ext.shop.svc.cluster.local." };

    it("and waits for the answer", async () => {
      const outcome = await askExternal(ext, async (query) =>
        query.reply({ answer: records("www.example.com. 60 IN A 192.0.2.53"), recursionAvailable: true }),
      );
      assert.equal(outcome.kind, "reply");
      if (outcome.kind !== "reply") return;
      assert.deepEqual(new Answer(outcome).answer, [
        "ext.shop.svc.cluster.local. 5 IN CNAME www.example.com.",
        "www.example.com. 60 IN A 192.0.2.53",
      ]);
      assert.ok(outcome.authoritative && !outcome.truncated);
    });

    it("and hands a truncated answer on as one", async () => {
      const outcome = await askExternal(ext, (query) => query.reply({ truncated: true }));
      assert.ok(outcome.kind === "reply" && outcome.truncated);
    });

    const failures: [title: string, elsewhere: Next, rcode: string][] = [
      ["a failure", (query) => query.fail(), "SERVFAIL"],
      ["a SERVFAIL reply", (query) => query.reply({ rcode: Rcode.SERVFAIL }), "SERVFAIL"],
      ["silence", () => ({ kind: "dropped" }), "SERVFAIL"],
    ];
    for (const [title, elsewhere, rcode] of failures) {
      it(`and fails on ${title}, so that no empty answer is cached`, async () => {
        const outcome = await askExternal(ext, elsewhere);
        assert.equal(outcome.kind === "failed" && rcodeName(outcome.rcode), rcode);
      });
    }

    it("and returns only the alias if the server does not resolve targets", async () => {
      for (const elsewhere of [
        ((query) => query.fail(Rcode.REFUSED)) satisfies Next,
        ((query) => query.reply({ rcode: Rcode.REFUSED })) satisfies Next,
      ]) {
        const outcome = await askExternal(ext, elsewhere);
        assert.ok(outcome.kind === "reply" && outcome.rcode === Rcode.NOERROR);
        assert.deepEqual(outcome.answer.map(recordText), [
          "ext.shop.svc.cluster.local. 5 IN CNAME www.example.com.",
        ]);
      }
    });

    it("but not for the alias itself", async () => {
      const outcome = await askExternal({ ...ext, type: "CNAME" }, () => assert.fail("was asked"));
      assert.equal(outcome.kind === "reply" && outcome.answer.length, 1);
    });

    it("at the end of a chain inside the cluster, and gives up on a long one", async () => {
      const chain = Array.from({ length: 12 }, (_, index) =>
        serviceYaml(
          `a${index}`,
          `{ type: ExternalName, externalName: a${index + 1}.shop.svc.cluster.local }`,
        ),
      );
      const folder = await manifest(`${chain.join("")}${serviceYaml("a12", "{ clusterIP: 10.96.0.12 }")}`);
      const plugin = make([`manifests ${folder}`]);
      started.push(plugin);
      await plugin.start();
      const near = await plugin.ask({ name: "a3.shop.svc.cluster.local." });
      assert.equal(near.answer.length, 10);
      assert.equal(near.answer.at(-1), "a12.shop.svc.cluster.local. 5 IN A 10.96.0.12");
      const far = await plugin.ask({ name: "a1.shop.svc.cluster.local." });
      assert.deepEqual([rcodeName(far.rcode), far.answer], ["NOERROR", []]);
    });
  });

  describe("falls through", () => {
    const next: Next = (query) => query.reply({ answer: records("elsewhere. 1 IN A 192.0.2.1") });
    const cases: [name: string, type: string, passed: boolean][] = [
      ["9.9.9.9.in-addr.arpa.", "PTR", true],
      ["1.0.96.10.in-addr.arpa.", "PTR", false],
      ["1.0.96.10.in-addr.arpa.", "TXT", false],
      ["96.10.in-addr.arpa.", "NS", true],
      ["nosuch.shop.svc.cluster.local.", "A", false],
      ["www.example.com.", "A", true],
    ];
    for (const [name, type, passed] of cases) {
      it(`${passed ? "with" : "not with"} ${name} ${type}, as kubeadm expects`, async () => {
        const plugin = await start(["fallthrough in-addr.arpa ip6.arpa"]);
        const answer = await plugin.ask({ name, type, next });
        assert.equal(answer.answer.join().startsWith("elsewhere."), passed);
      });
    }

    it("for names that do not exist, and only for these", async () => {
      const plugin = await start(["fallthrough"]);
      assert.equal((await plugin.ask({ name: "foo.cluster.local.", next })).answer.length, 1);
      assert.equal(
        (await plugin.ask({ name: "web.shop.svc.cluster.local.", type: "TXT", next })).answer.length,
        0,
      );
    });
  });

  describe("before the first complete listing", () => {
    it("fails instead of denying, with the SOA, and is not ready", async () => {
      const plugin = make([`manifests ${fixture}`]);
      const answer = await plugin.ask({ name: "web.shop.svc.cluster.local." });
      assert.equal(rcodeName(answer.rcode), "SERVFAIL");
      assert.match(
        answer.authority.join(),
        /^cluster\.local\. 5 IN SOA ns\.dns\.cluster\.local\. \S+ 0 7200/,
      );
      assert.deepEqual(
        plugin.instances.map((instance) => instance.ready?.()),
        [false],
      );
      assert.equal(rcodeName((await plugin.ask({ name: "svc.cluster.local." })).rcode), "NOERROR");
    });

    it("falls through first", async () => {
      const plugin = make([`manifests ${fixture}`, "fallthrough"]);
      const next: Next = (query) => query.reply({ rcode: Rcode.NXDOMAIN });
      assert.equal(
        rcodeName((await plugin.ask({ name: "web.shop.svc.cluster.local.", next })).rcode),
        "NXDOMAIN",
      );
    });

    it("and is ready afterwards", async () => {
      const plugin = await start();
      assert.deepEqual(
        plugin.instances.map((instance) => instance.ready?.()),
        [true],
      );
    });
  });

  describe("names its own server", () => {
    const ask = async (addresses: string[], name: string, type: string, hosts: string[] = []) => {
      const machine = {
        hostname: "h",
        interfaceAddresses: () => undefined,
        addresses: () => addresses,
        environment: {},
        parallelism: 1,
        descriptors: 1024,
      };
      const plugin = await start([], ZONES, { site: { machine } });
      plugin.settings.listenHosts.push(...hosts);
      const { answer, additional } = await plugin.ask({ name, type });
      return { answer: answer.sort(), additional: additional.sort() };
    };

    it("after the service whose endpoint it is", async () => {
      assert.deepEqual(await ask(["10.244.1.5"], "cluster.local.", "NS"), {
        answer: ["cluster.local. 5 IN NS web.shop.svc.cluster.local."],
        additional: ["web.shop.svc.cluster.local. 5 IN A 10.96.20.5"],
      });
      assert.deepEqual((await ask(["10.244.1.5"], "ns.dns.cluster.local.", "A")).answer, [
        "ns.dns.cluster.local. 5 IN A 10.96.20.5",
      ]);
    });

    it("in any spelling of the zone", async () => {
      const { answer } = await ask(["10.244.1.5"], "CLUSTER.local.", "NS");
      assert.deepEqual(answer, ["CLUSTER.local. 5 IN NS web.shop.svc.cluster.local."]);
    });

    it("after the endpoints of a headless one", async () => {
      assert.deepEqual(await ask(["10.244.2.12"], "cluster.local.", "NS"), {
        answer: [
          "cluster.local. 5 IN NS db-0.db.shop.svc.cluster.local.",
          "cluster.local. 5 IN NS db-1.db.shop.svc.cluster.local.",
        ],
        additional: [
          "db-0.db.shop.svc.cluster.local. 5 IN A 10.244.1.11",
          "db-1.db.shop.svc.cluster.local. 5 IN A 10.244.2.12",
        ],
      });
    });

    it("by its own addresses if no service has it as an endpoint", async () => {
      const own = ["192.0.2.10", "2001:db8::10", "fe80::1%eth0"];
      assert.deepEqual(await ask(own, "cluster.local.", "NS"), {
        answer: ["cluster.local. 5 IN NS ns.dns.cluster.local."],
        additional: [
          "ns.dns.cluster.local. 5 IN A 192.0.2.10",
          "ns.dns.cluster.local. 5 IN AAAA 2001:db8::10",
        ],
      });
      assert.deepEqual((await ask(own, "ns.dns.cluster.local.", "AAAA")).answer, [
        "ns.dns.cluster.local. 5 IN AAAA 2001:db8::10",
      ]);
    });

    it("by the bound address, if others can reach it", async () => {
      const { additional } = await ask(["192.0.2.10"], "cluster.local.", "NS", [
        "127.0.0.1",
        "::",
        "192.0.2.99",
      ]);
      assert.deepEqual(additional, ["ns.dns.cluster.local. 5 IN A 192.0.2.99"]);
      const loopback = await ask(["192.0.2.10"], "cluster.local.", "NS", ["127.0.0.1", "::1"]);
      assert.deepEqual([loopback.answer.length, loopback.additional], [1, []]);
      const all = await ask(["192.0.2.10"], "cluster.local.", "NS", ["0.0.0.0"]);
      assert.deepEqual(all.additional, ["ns.dns.cluster.local. 5 IN A 192.0.2.10"]);
    });

    it("by the name in the SOA record of a reverse zone", async () => {
      const { answer } = await ask(["192.0.2.10"], "NS.dns.in-addr.arpa.", "A");
      assert.deepEqual(answer, ["NS.dns.in-addr.arpa. 5 IN A 192.0.2.10"]);
    });

    it("even without any address", async () => {
      const { answer, additional } = await ask([], "cluster.local.", "NS");
      assert.deepEqual([answer.length, additional.length], [1, 0]);
      assert.deepEqual((await ask([], "ns.dns.cluster.local.", "A")).answer, []);
    });

    it("in a reverse zone by names of the forward one", async () => {
      const { answer } = await ask(["10.244.1.5"], "in-addr.arpa.", "NS");
      assert.deepEqual(answer, ["in-addr.arpa. 5 IN NS web.shop.svc.cluster.local."]);
    });
  });

  it("names the SOA after the zone of the question, with the time of the last change", async () => {
    const plugin = await start();
    const serial = Math.floor(plugin.clock.wallTime() / 1000);
    const { authority } = await plugin.ask({ name: "9.9.9.9.in-addr.arpa.", type: "PTR" });
    assert.deepEqual(authority, [
      `in-addr.arpa. 5 IN SOA ns.dns.in-addr.arpa. hostmaster.in-addr.arpa. ${serial} 7200 1800 86400 5`,
    ]);
  });

  it("follows the files", async () => {
    const folder = await manifest(serviceYaml("web", "{ clusterIP: 10.96.0.1 }"));
    const plugin = make([`manifests ${folder}`]);
    started.push(plugin);
    await plugin.start();
    await writeFile(join(folder, "shop.yaml"), serviceYaml("web", "{ clusterIP: 10.96.0.2 }"));
    plugin.clock.advance(2000);
    const asked = { name: "web.shop.svc.cluster.local." };
    const deadline = Date.now() + 10_000;
    while (Date.now() < deadline) {
      const { answer } = await plugin.ask(asked);
      if (answer.join().endsWith("10.96.0.2")) return;
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.fail("the change never showed");
  });

  it("reports faults in a manifest, with file and line", async () => {
    const folder = await manifest(`${serviceYaml("web", "{ clusterIP: soon }")}---\nkind: [\n`);
    const plugin = make([`manifests ${folder}`]);
    started.push(plugin);
    await plugin.start();
    const lines = plugin.log.lines.map((line) => line.replaceAll(folder, ""));
    assert.equal(
      lines[0],
      '[ERROR] plugin/kubernetes: manifests: /shop.yaml:2: spec.clusterIP "soon" is not an IP address',
    );
    assert.match(lines[1] ?? "", /^\[ERROR\] plugin\/kubernetes: manifests: \/shop\.yaml:\d: not valid YAML/);
  });

  it("refuses to start without its manifests", async () => {
    const plugin = make(["manifests /nowhere/at/all"]);
    await assert.rejects(plugin.start(), /^SetupError: manifests: \/nowhere\/at\/all: does not exist$/);
  });

  describe("finds manifests", () => {
    it("relative to the file that names them", () => {
      const plugin = make(["manifests one two", "manifests /three"]);
      const paths = plugin.configs.flatMap(({ manifests }) => manifests);
      assert.deepEqual(paths, [
        { path: "one", folder: "." },
        { path: "two", folder: "." },
        { path: "/three", folder: "." },
      ]);
    });

    it("or to the directory of root", async () => {
      const folder = await manifest(serviceYaml("web", "{ clusterIP: 10.96.0.1 }"));
      const plugin = make(["manifests shop.yaml"], ZONES, {
        site: { resolvePath: (path) => join(folder, path) },
      });
      plugin.settings.root = folder;
      started.push(plugin);
      await plugin.start();
      assert.equal((await plugin.ask({ name: "web.shop.svc.cluster.local." })).answer.length, 1);
    });
  });

  describe("tells metadata", () => {
    const ofClient = {
      "client-namespace": "shop",
      "client-pod-name": "client-1",
      "client-label/app": "client",
    };
    const cases: [title: string, question: QuestionOptions, labels: Record<string, string>][] = [
      [
        "of a service",
        { name: "web.shop.svc.cluster.local." },
        { kind: "svc", namespace: "shop", service: "web" },
      ],
      [
        "of a port",
        { name: "_http._tcp.web.shop.svc.cluster.local." },
        { kind: "svc", namespace: "shop", service: "web", "port-name": "http", protocol: "tcp" },
      ],
      [
        "of an endpoint",
        { name: "db-0.db.shop.svc.cluster.local." },
        { kind: "svc", namespace: "shop", service: "db", endpoint: "db-0" },
      ],
      ["of a pod", { name: "1-2-3-4.shop.pod.cluster.local." }, { kind: "pod", namespace: "shop" }],
      ["of a name without meaning", { name: "foo.cluster.local." }, { "parse-error": "invalid query name" }],
      ["of nothing outside of the zones", { name: "www.example.com." }, {}],
      ["of the client", { name: "svc.cluster.local.", client: "10.244.3.40" }, ofClient],
      [
        "of the client that asks for a name outside of the zones",
        { name: "www.example.com.", client: "10.244.3.40" },
        ofClient,
      ],
      [
        "of the client that asks for an address",
        { name: "1.0.96.10.in-addr.arpa.", type: "PTR", client: "10.244.3.40" },
        { "parse-error": "invalid query name", ...ofClient },
      ],
      ["of no client that is no pod", { name: "www.example.com.", client: "192.0.2.77" }, {}],
    ];
    for (const [title, question, labels] of cases) {
      it(title, async () => {
        const metadata = { name: "metadata", instance: { metadataZones: new ZoneList([Name.root]) } };
        const plugin = await start(["pods verified"], undefined, { neighbours: [metadata] });
        const query = plugin.query(question);
        query.metadata = new Map();
        for (const instance of plugin.instances) instance.provideMetadata?.(query);
        const found = [...query.metadata.keys()].flatMap((label) => {
          const value = query.metadataValue(label);
          return value === undefined ? [] : [[label.replace("kubernetes/", ""), value]];
        });
        assert.deepEqual(Object.fromEntries(found), labels);
      });
    }
  });

  it("takes the zones of the server block if it has no zones of its own", async () => {
    const plugin = await start([], "", { keys: "cluster.local:53 10.0.0.0/8" });
    assert.equal((await plugin.ask({ name: "web.shop.svc.cluster.local." })).answer.length, 1);
    assert.equal((await plugin.ask({ name: "1.0.96.10.in-addr.arpa.", type: "PTR" })).answer.length, 1);
  });
});
