import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { formatIpAddress, parseIpAddress } from "../../lib/net/ip-address.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { addressKey } from "../objects/addresses.ts";
import { LabelSelector } from "../objects/label-selector.ts";
import { KINDS } from "../objects/objects.ts";
import { SharedValues } from "../objects/shared-values.ts";
import { endpointLabel } from "../store/services/service-endpoints.ts";
import { ClusterStore } from "../store/store.ts";
import { type FileSystem, machineFileSystem } from "./file-system.ts";
import { formatManifestProblem } from "./manifest-problem.ts";
import { ManifestPathError, ManifestSource, type ManifestSourceOptions } from "./manifest-source.ts";

const fixture = fileURLToPath(new URL("../../../test/fixtures/kubernetes", import.meta.url));

function serviceYaml(name: string, address: string, labels = ""): string {
  const metadata = `{ name: ${name}, namespace: shop, labels: { ${labels} } }`;
  return `apiVersion: v1\nkind: Service\nmetadata: ${metadata}\nspec: { clusterIP: ${address} }\n`;
}

describe("ManifestSource", () => {
  let folder: string;
  let clock: FakeClock;
  let store: ClusterStore;
  let problems: string[];
  let mended: string[];
  let sources: ManifestSource[];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "portolan-manifests-"));
    clock = new FakeClock();
    store = new ClusterStore({ clock, kinds: KINDS });
    problems = [];
    mended = [];
    sources = [];
  });

  afterEach(async () => {
    for (const source of sources) source.stop();
    await rm(folder, { recursive: true, force: true });
  });

  async function start(options: Partial<ManifestSourceOptions> = {}): Promise<ManifestSource> {
    const source = new ManifestSource({
      store,
      paths: [folder],
      clock,
      reduce: { shared: new SharedValues() },
      onMended: (path) => mended.push(path.replace(folder, "")),
      onProblem: (problem) => problems.push(formatManifestProblem(problem).replaceAll(folder, "")),
      ...options,
    });
    sources.push(source);
    await source.start();
    return source;
  }

  async function write(name: string, text: string): Promise<void> {
    await writeFile(join(folder, name), text);
  }

  /** The services that have records, each with its first address. */
  function served(): string[] {
    const entries = Array.from(store.services.entries()).filter((entry) => entry.service !== undefined);
    return entries
      .map(({ key, service }) => `${key} ${service?.clusterAddresses.map(formatIpAddress).join()}`.trim())
      .sort();
  }

  function endpointsOf(key: string): string[] {
    return (store.services.entry(key)?.endpoints.groups ?? [])
      .flatMap((group) => Array.from({ length: group.readyCount }, (_, index) => endpointLabel(group, index)))
      .sort();
  }

  describe("reads", () => {
    it("the cluster of the specification", async () => {
      await start({ paths: [fixture] });
      assert.equal(problems.length, 1);
      assert.match(problems[0] ?? "", /service shop\/pending has no clusterIP/);
      assert.ok(store.isSynced);
      assert.equal(served().length, 25);
      assert.deepEqual(endpointsOf("web.shop"), ["10-244-1-5", "10-244-2-7"]);
      assert.deepEqual(endpointsOf("db.shop"), ["db-0", "db-1"]);
      assert.deepEqual(endpointsOf("early.shop"), ["early-0"]);
      assert.deepEqual(endpointsOf("nop.shop"), ["nop-0"]);
      assert.deepEqual(endpointsOf("cache.shop"), [
        "10-244-1-21",
        "10-244-2-22",
        "fd00-10-244-1--21",
        "fd00-10-244-2--0",
      ]);
      const client = store.pods.at(addressKey(parseIpAddress("fd00:10:244:3::40") ?? assert.fail()));
      assert.deepEqual(
        client.map(({ name }) => name),
        ["client-1"],
      );
      assert.ok(store.services.namespace("bare")?.exists);
      assert.equal(store.services.namespace("nons"), undefined);
    });

    it("files of every form, in folders too, and follows links", async () => {
      await mkdir(join(folder, "deep", "er"), { recursive: true });
      await mkdir(join(folder, ".hidden"));
      await write(
        "a.yaml",
        `# shop\n---\n${serviceYaml("a", "10.96.0.1")}---\n${serviceYaml("b", "10.96.0.2")}`,
      );
      const list = {
        kind: "List",
        apiVersion: "v1",
        items: [{ kind: "ServiceList", apiVersion: "v1", items: [] }],
      };
      const item = { metadata: { name: "c", namespace: "shop" }, spec: { clusterIPs: ["10.96.0.3"] } };
      await write(
        "c.json",
        JSON.stringify({ ...list, items: [{ ...item, kind: "Service", apiVersion: "v1" }] }),
      );
      await write("deep/er/d.yml", serviceYaml("d", "10.96.0.4"));
      await write(".hidden/e.yaml", serviceYaml("e", "10.96.0.5"));
      await write("notes.txt", "not: [a manifest");
      await symlink(folder, join(folder, "deep", "round"));
      await symlink(join(folder, "nowhere"), join(folder, "dangling.yaml"));
      await start();
      assert.deepEqual(served(), [
        "a.shop 10.96.0.1",
        "b.shop 10.96.0.2",
        "c.shop 10.96.0.3",
        "d.shop 10.96.0.4",
      ]);
      assert.deepEqual(problems, []);
    });

    it("a file whatever it is called, if it is named itself", async () => {
      await write("shop.txt", serviceYaml("a", "10.96.0.1"));
      await start({ paths: [join(folder, "shop.txt")] });
      assert.deepEqual(served(), ["a.shop 10.96.0.1"]);
    });

    it("nothing of kinds that DNS does not know, but their namespaces", async () => {
      await write(
        "a.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: a, namespace: jobs }\n---\n" +
          "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: { name: knative, namespace: shop }\n",
      );
      await start();
      assert.deepEqual(served(), []);
      for (const name of ["jobs", "shop", "default", "kube-system"])
        assert.ok(store.services.namespace(name)?.exists, name);
      assert.deepEqual(problems, []);
    });

    it("an object without namespace into default", async () => {
      await write(
        "a.yaml",
        "apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { clusterIP: 10.96.0.1 }\n",
      );
      await start();
      assert.deepEqual(served(), ["a.default 10.96.0.1"]);
    });
  });

  describe("decides where endpoints come from:", () => {
    const pods = [1, 2].map(
      (number) =>
        `---\napiVersion: v1\nkind: Pod\nmetadata: { name: p${number}, namespace: shop, labels: { app: web } }\n` +
        `status: { podIP: 10.0.0.${number} }\n`,
    );
    const selecting =
      "apiVersion: v1\nkind: Service\nmetadata: { name: web, namespace: shop }\nspec: { clusterIP: None, selector: { app: web } }\n";
    const endpoints =
      "---\napiVersion: v1\nkind: Endpoints\nmetadata: { name: web, namespace: shop }\nsubsets: [{ addresses: [{ ip: 10.0.0.7 }] }]\n";
    const slice =
      "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\naddressType: IPv4\nendpoints: [{ addresses: [10.0.0.8] }]\n" +
      "metadata: { name: web, namespace: shop, labels: { kubernetes.io/service-name: web } }\n";

    it("the pods that the selector finds", async () => {
      await write("a.yaml", selecting + pods.join(""));
      await start();
      assert.deepEqual(endpointsOf("web.shop"), ["10-0-0-1", "10-0-0-2"]);
    });

    it("Endpoints before pods", async () => {
      await write("a.yaml", selecting + pods.join("") + endpoints);
      await start();
      assert.deepEqual(endpointsOf("web.shop"), ["10-0-0-7"]);
    });

    it("slices before both", async () => {
      await write("a.yaml", selecting + pods.join("") + endpoints + slice);
      await start();
      assert.deepEqual(endpointsOf("web.shop"), ["10-0-0-8"]);
    });
  });

  it("leaves out what the selectors leave out", async () => {
    const namespaces = ["shop", "test"].map(
      (name) =>
        `---\napiVersion: v1\nkind: Namespace\nmetadata: { name: ${name}, labels: { stage: ${name} } }\n`,
    );
    await write("a.yaml", serviceYaml("a", "10.96.0.1", "team: one") + namespaces.join(""));
    await write("b.yaml", serviceYaml("b", "10.96.0.2", "team: two"));
    await start({
      labels: LabelSelector.parse("team=one"),
      namespaceLabels: LabelSelector.parse("stage notin (test)"),
    });
    assert.deepEqual(served(), ["a.shop 10.96.0.1"]);
    assert.ok(store.services.namespace("shop")?.exists);
    assert.equal(store.services.namespace("test"), undefined);
  });

  describe("follows changes:", () => {
    it("of files, new, changed and deleted, at each poll", async () => {
      await write("a.yaml", serviceYaml("a", "10.96.0.1"));
      const source = await start({ pollIntervalMs: 1000 });
      const touched: string[] = [];
      store.subscribe(({ services }) => touched.push(...services));

      await write("a.yaml", serviceYaml("a", "10.96.0.11"));
      await write("b.yaml", serviceYaml("b", "10.96.0.2"));
      clock.advance(1000);
      await source.refresh();
      assert.deepEqual(served(), ["a.shop 10.96.0.11", "b.shop 10.96.0.2"]);
      assert.deepEqual(touched, ["a.shop", "b.shop"]);

      await rm(join(folder, "a.yaml"));
      clock.advance(1000);
      await source.refresh();
      assert.deepEqual(served(), ["b.shop 10.96.0.2"]);
      assert.deepEqual(touched, ["a.shop", "b.shop", "a.shop"]);
    });

    it("of a file whose second write leaves the time of the first", async () => {
      let age = 0;
      let reads = 0;
      const coarse: FileSystem = {
        ...machineFileSystem,
        async state(path) {
          return {
            ...(await machineFileSystem.state(path)),
            stamp: "as ever",
            modifiedAt: clock.wallTime() - age,
          };
        },
        read(path) {
          reads++;
          return machineFileSystem.read(path);
        },
      };
      await write("a.yaml", serviceYaml("a", "10.96.0.1"));
      const source = await start({ fileSystem: coarse });
      await write("a.yaml", serviceYaml("a", "10.96.0.2"));
      await source.refresh();
      assert.deepEqual(served(), ["a.shop 10.96.0.2"]);
      age = 3000;
      await source.refresh();
      reads = 0;
      await source.refresh();
      assert.equal(reads, 0, "a file that has settled is not read again");
    });

    it("none after stop", async () => {
      const source = await start();
      assert.equal(clock.pendingTimers, 1);
      source.stop();
      assert.equal(clock.pendingTimers, 0);
    });

    it("of a mounted ConfigMap, which swaps a link", async () => {
      const version = async (name: string, address: string) => {
        await mkdir(join(folder, name));
        await write(`${name}/shop.yaml`, serviceYaml("a", address));
        await symlink(name, join(folder, "..new"));
        await rename(join(folder, "..new"), join(folder, "..data"));
      };
      await version("..2026_01", "10.96.0.1");
      await symlink("..data/shop.yaml", join(folder, "shop.yaml"));
      const source = await start();
      assert.deepEqual(served(), ["a.shop 10.96.0.1"]);
      await version("..2026_02", "10.96.0.2");
      await source.refresh();
      assert.deepEqual(served(), ["a.shop 10.96.0.2"]);
      assert.deepEqual(problems, []);
    });
  });

  describe("takes no names away for a fault:", () => {
    const good = `${serviceYaml("a", "10.96.0.1")}---\n${serviceYaml("b", "10.96.0.2")}---\n${serviceYaml("c", "10.96.0.3")}`;

    it("the rest of a file that is faulty from the start serves", async () => {
      await write("a.yaml", `${serviceYaml("a", "10.96.0.1")}---\nkind: [\n---\n${serviceYaml("b", "soon")}`);
      await start();
      assert.deepEqual(served(), ["a.shop 10.96.0.1"]);
      assert.match(problems[0] ?? "", /^\/a\.yaml:[67]: not valid YAML: /);
      assert.equal(problems[1], '/a.yaml:8: spec.clusterIP "soon" is not an IP address');
      assert.equal(problems.length, 2);
    });

    it("a faulty document keeps what its file defined, while the others are followed", async () => {
      await write("a.yaml", good);
      const source = await start();
      await write(
        "a.yaml",
        `${serviceYaml("a", "10.96.0.11")}---\nkind: "Service\n---\n${serviceYaml("d", "10.96.0.4")}`,
      );
      await source.refresh();
      const kept = ["a.shop 10.96.0.11", "b.shop 10.96.0.2", "c.shop 10.96.0.3", "d.shop 10.96.0.4"];
      assert.deepEqual(served(), kept);
      assert.equal(problems.length, 1);
      assert.equal(source.problems.length, 1);

      await source.refresh();
      assert.equal(problems.length, 1, "told once");
      assert.deepEqual(mended, []);

      await write("a.yaml", serviceYaml("a", "10.96.0.1"));
      await source.refresh();
      assert.deepEqual(served(), ["a.shop 10.96.0.1"]);
      assert.deepEqual(source.problems, []);
      assert.deepEqual(mended, ["/a.yaml"]);
      await source.refresh();
      assert.deepEqual(mended, ["/a.yaml"], "told once");
    });

    it("a file that cannot be read keeps what it defined, and is tried again", async () => {
      let readable = true;
      const refusal = Object.assign(new Error("refused"), { code: "EACCES" });
      const read = (path: string) => (readable ? machineFileSystem.read(path) : Promise.reject(refusal));
      await write("a.yaml", good);
      const source = await start({ fileSystem: { ...machineFileSystem, read } });
      readable = false;
      await write("a.yaml", serviceYaml("new", "10.96.0.9"));
      await source.refresh();
      assert.equal(served().length, 3);
      assert.deepEqual(problems, ["/a.yaml:1: no permission to read it"]);
      readable = true;
      await source.refresh();
      assert.deepEqual(served(), ["new.shop 10.96.0.9"]);
    });

    it("a file that is no text keeps what it defined", async () => {
      await write("a.yaml", good);
      const source = await start();
      await writeFile(join(folder, "a.yaml"), Uint8Array.of(0xff, 0xfe, 0));
      await source.refresh();
      assert.equal(served().length, 3);
      assert.deepEqual(problems, ["/a.yaml:1: not UTF-8 text"]);
    });

    it("a configured path that vanishes keeps everything, and its data ages", async () => {
      await write("a.yaml", good);
      const source = await start();
      await rename(folder, `${folder}-away`);
      clock.advance(5000);
      await source.refresh();
      assert.equal(served().length, 3);
      assert.deepEqual(problems, [":1: does not exist"]);
      assert.equal(store.age("services"), 5000);
      await rename(`${folder}-away`, folder);
      await source.refresh();
      assert.deepEqual(source.problems, []);
      assert.equal(store.age("services"), 0);
    });
  });

  it("says where a document is no Kubernetes object", async () => {
    await write(
      "values.yaml",
      "replicas: 3\n---\nkind: Service\n---\n- a\n---\napiVersion: v1\nkind: List\nitems:\n- 7\n",
    );
    await start();
    assert.deepEqual(problems, [
      "/values.yaml:1: not a Kubernetes object: kind is missing",
      "/values.yaml:3: not a Kubernetes object: apiVersion is missing",
      "/values.yaml:5: not a Kubernetes object: expected a mapping with apiVersion and kind",
      "/values.yaml:10: not a Kubernetes object: expected a mapping with apiVersion and kind",
    ]);
  });

  it("warns of two objects of one name, and the later counts", async () => {
    await write("a.yaml", serviceYaml("a", "10.96.0.1"));
    await write("b.yaml", serviceYaml("a", "10.96.0.2"));
    await start();
    assert.deepEqual(served(), ["a.shop 10.96.0.2"]);
    assert.match(problems.join(), /^\/b\.yaml:1: Service shop\/a replaces the one in .*\/a\.yaml:1$/);
  });

  it("warns of a service that gets no address", async () => {
    await write("a.yaml", "apiVersion: v1\nkind: Service\nmetadata: { name: a }\nspec: { ports: [] }\n");
    await start();
    assert.match(
      problems.join(),
      /^\/a\.yaml:1: service default\/a has no clusterIP and therefore no records/,
    );
  });

  it("refuses to start on a path that is not there", async () => {
    const paths = [join(folder, "nowhere")];
    await assert.rejects(start({ paths }), (error) => {
      assert.ok(error instanceof ManifestPathError);
      assert.equal(error.reason, "does not exist");
      return true;
    });
    assert.equal(clock.pendingTimers, 0);
  });
});
