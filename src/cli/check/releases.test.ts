/** Helm values inside Kubernetes objects. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatPlace } from "../../corefile/diagnostic.ts";
import { readInput } from "../migrate/input.ts";
import { corefileInHelmValues } from "./corefile-in-helm-values.ts";
import { formatForPeople } from "./human.ts";

const SERVERS = `servers:
  - zones:
      - zone: .
    port: 53
    plugins:
      - name: errors
      - name: whoami
`;
const COREFILE = ".:53 {\n    errors\n    whoami\n}\n";

function indented(by: number): string {
  return SERVERS.replaceAll(/^(?=.)/gm, " ".repeat(by));
}

for (const [title, head, by, line] of [
  ["a HelmRelease after another document", "kind: Other\n---\nkind: HelmRelease\nspec:\n  values:\n", 4, 12],
  ["a HelmChartConfig", "kind: HelmChartConfig\nspec:\n  valuesContent: |-\n", 4, 10],
  ["values alone", "", 0, 7],
] as const) {
  test(`check and migrate read ${title}, with places in the original file`, () => {
    const source = { text: `${head}${indented(by)}`, file: "f.yaml" };
    const translated = corefileInHelmValues(source);
    assert.equal(translated?.source.text, COREFILE);
    const moved = translated.relocate({
      code: "X",
      severity: "error",
      message: "",
      span: { file: "f.yaml", line: 3, column: 5, length: 6 },
    });
    assert.equal(formatPlace(moved.span), `f.yaml:${line}:${by + 15}`);
    const input = readInput(source, undefined);
    assert.equal(input.kind, "helm-values");
  });
}

test("a HelmRelease of another chart is not read as Helm values", () => {
  const source = { text: "kind: HelmRelease\nspec:\n  values:\n    servers: 3\n", file: "f.yaml" };
  assert.equal(corefileInHelmValues(source), undefined);
});

test("the output for people says that the Corefile was found in YAML", () => {
  const file = { file: "Corefile", form: "YAML", diagnostics: [], textOf: () => undefined } as const;
  assert.equal(formatForPeople([file], false), "Corefile (YAML): no faults\n");
});
