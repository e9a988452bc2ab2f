import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { InputError, type MigrationInput, readInput } from "./input.ts";

const COREFILE = ".:53 {\n    whoami\n}\n";
const ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: coredns\n";
const OTHER = "apiVersion: v1\nkind: ConfigMap\ndata:\n  motd: hello\n";
const COREDNS = "apiVersion: v1\nkind: ConfigMap\ndata:\n  Corefile: |\n    .:53 {\n        whoami\n    }\n";
const KUBE_DNS = `apiVersion: v1\nkind: ConfigMap\ndata:\n  upstreamNameservers: '["8.8.8.8"]'\n`;
const VALUES = "servers:\n- zones:\n  - zone: .\n";

function read(text: string, kind?: MigrationInput["kind"]): MigrationInput {
  return readInput({ text, file: "dir/given.yaml" }, kind);
}

/** The output of `kubectl get -o yaml` for several objects. */
function list(...objects: string[]): string {
  const items = objects.map((object) => `- ${object.trimEnd().replaceAll("\n", "\n  ")}\n`);
  return `apiVersion: v1\nkind: List\nitems:\n${items.join("")}`;
}

function refusal(text: string, kind?: MigrationInput["kind"]): string {
  try {
    read(text, kind);
  } catch (error) {
    if (error instanceof InputError) return error.message;
    throw error;
  }
  return assert.fail("it was not refused");
}

describe("a ConfigMap with a Corefile", () => {
  for (const [title, text] of [
    ["alone", COREDNS],
    ["after another document", `${ACCOUNT}---\n${COREDNS}`],
    ["after another ConfigMap", `${OTHER}---\n${COREDNS}`],
    ["after a document that is not valid YAML", `a: [\n---\n${COREDNS}`],
    ["before the ConfigMap of kube-dns", `${COREDNS}---\n${KUBE_DNS}`],
    ["in a List", list(ACCOUNT, OTHER, COREDNS)],
    ["in a List after another document", `${ACCOUNT}---\n${list(COREDNS)}`],
    [
      "in a ConfigMapList, whose items have no kind",
      JSON.stringify({
        apiVersion: "v1",
        kind: "ConfigMapList",
        items: [null, { data: { Corefile: COREFILE } }],
      }),
    ],
  ] as const) {
    it(`is found ${title}`, () =>
      assert.deepEqual(read(text), {
        kind: "corefile",
        source: { text: COREFILE, file: "dir/given.yaml (Corefile)" },
      }));
  }
});

describe("a ConfigMap of kube-dns", () => {
  for (const [title, text, kind] of [
    ["after another document", `${ACCOUNT}---\n${KUBE_DNS}`, undefined],
    ["in a List", list(OTHER, KUBE_DNS), undefined],
    ["after a Corefile, with kube-dns as the source", `${COREDNS}---\n${KUBE_DNS}`, "kube-dns"],
  ] as const) {
    it(`is found ${title}`, () => {
      const input = read(text, kind);
      assert.ok(input.kind === "kube-dns");
      assert.deepEqual(input.config.upstreamNameservers, ["8.8.8.8"]);
    });
  }

  it("may be empty if kube-dns is named as the source", () =>
    assert.equal(read(`${ACCOUNT}---\nkind: ConfigMap\n`, "kube-dns").kind, "kube-dns"));

  for (const [value, message] of [
    ['{"x": "notalist"}', 'dir/given.yaml: stubDomains: "x": a JSON array of strings was expected'],
    [
      '{"a": ["192.0.2.1"], "x": ["a b"]}',
      `dir/given.yaml: stubDomains: "x": 'a b' is not an address, with or without port, or a host name`,
    ],
  ] as const) {
    it(`is refused by file and key with ${value}`, () =>
      assert.equal(refusal(`kind: ConfigMap\ndata:\n  stubDomains: '${value}'\n`), message));
  }
});

describe("Kubernetes YAML without such a ConfigMap", () => {
  for (const [title, text, kind] of [
    ["of another kind", ACCOUNT, undefined],
    ["of another kind, called values", ACCOUNT, "helm-values"],
    ["of another kind, called kube-dns", ACCOUNT, "kube-dns"],
    ["with another ConfigMap", `${ACCOUNT}---\n${OTHER}`, undefined],
    ["in a List", list(ACCOUNT), undefined],
    ["in an empty List", "apiVersion: v1\nkind: List\nitems: []\n", undefined],
  ] as const) {
    it(`is refused ${title}`, () =>
      assert.match(
        refusal(text, kind),
        /^dir\/given\.yaml: this Kubernetes YAML has no ConfigMap with a Corefile .* -configmap NAMESPACE\/NAME$/,
      ));
  }

  it("is refused if a document is invalid, since that may be the ConfigMap", () =>
    assert.match(
      refusal(`${ACCOUNT}---\nkind: ConfigMap\ndata: [\n`),
      /^dir\/given\.yaml:8: not valid YAML: /,
    ));
});

describe("a plain Corefile", () => {
  for (const text of [
    COREFILE,
    ".:53\nwhoami\n",
    "{\n    debug\n}\n",
    "example.org {}\n",
    "kind: apiVersion: {\n    whoami\n}\n",
    "# kind: ConfigMap\n# apiVersion: v1\n. {\n    whoami\n}\n",
    "",
  ]) {
    it(`stays a Corefile: ${JSON.stringify(text)}`, () =>
      assert.deepEqual(read(text), { kind: "corefile", source: { text, file: "dir/given.yaml" } }));
  }
});

describe("values of the Helm chart", () => {
  it("are recognized by their servers", () => assert.equal(read(VALUES).kind, "helm-values"));
  it("are taken as what the user calls them", () =>
    assert.deepEqual(read("a: 1\n", "helm-values"), { kind: "helm-values", values: { a: 1 } }));
});
