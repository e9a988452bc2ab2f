/** What GitHub shows those who report and change: the forms are valid, and lead to what is there. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { projectRoot } from "../support/portolan.ts";

const read = (path: string): string => readFileSync(join(projectRoot, ".github", path), "utf8");

/** The types of fields that GitHub knows, and what each needs. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  markdown: ["value"],
  textarea: ["label"],
  input: ["label"],
  dropdown: ["label", "options"],
  checkboxes: ["label", "options"],
};

interface Field {
  readonly type: string;
  readonly id?: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly validations?: { readonly required: boolean };
}

interface Form {
  readonly name: string;
  readonly description: string;
  readonly labels: readonly string[];
  readonly body: readonly Field[];
}

const forms = readdirSync(join(projectRoot, ".github", "ISSUE_TEMPLATE")).filter(
  (file) => file !== "config.yml",
);

test("there is a form for faults and one for wishes", () => {
  assert.deepEqual(forms.sort(), ["bug-report.yml", "feature-request.yml"]);
});

for (const file of forms) {
  test(`${file} is a form that GitHub takes`, () => {
    const form: Form = parse(read(`ISSUE_TEMPLATE/${file}`));
    for (const key of ["name", "description"] as const) assert.equal(typeof form[key], "string", key);
    assert.ok(form.labels.length > 0);
    const ids = new Set<string>();
    for (const { type, id, attributes, validations } of form.body) {
      for (const needed of FIELDS[type] ?? assert.fail(`a field of type ${type}`))
        assert.ok(needed in attributes, `${id}: ${needed}`);
      if (type === "markdown") continue;
      assert.match(id ?? "", /^[a-z][a-z-]*$/);
      assert.ok(!ids.has(id ?? ""), `${id} twice`);
      ids.add(id ?? "");
      if (validations !== undefined) assert.equal(typeof validations.required, "boolean");
    }
    assert.ok(form.body.some(({ validations }) => validations?.required === true));
  });
}

test("a report of a fault asks for what finds it", () => {
  const form: Form = parse(read("ISSUE_TEMPLATE/bug-report.yml"));
  const required = form.body.filter(({ validations }) => validations?.required).map(({ id }) => id);
  for (const id of ["what-happened", "expected", "reproduce", "corefile", "version"])
    assert.ok(required.includes(id), id);
});

test("vulnerabilities are not reported in issues", () => {
  assert.equal(parse(read("ISSUE_TEMPLATE/config.yml")).blank_issues_enabled, false);
  assert.match(
    read("ISSUE_TEMPLATE/bug-report.yml"),
    /Do not report vulnerabilities here: see \[SECURITY\.md\]/,
  );
});

test("the template of pull requests names commands and folders that exist", () => {
  const template = read("PULL_REQUEST_TEMPLATE.md");
  const { scripts } = JSON.parse(readFileSync(join(projectRoot, "package.json"), "utf8"));
  for (const [, script = ""] of template.matchAll(/npm (?:run )?(check|test)\b/g))
    assert.ok(script in scripts, script);
  for (const [, folder = ""] of template.matchAll(/`(\w+)\/`/g))
    assert.ok(existsSync(join(projectRoot, folder)), folder);
});

test("code owners are teams, of paths that exist, and every file has some", () => {
  const lines = read("CODEOWNERS")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(/\s+/));
  assert.equal(lines[0]?.[0], "*");
  for (const [path = "", ...owners] of lines) {
    if (path !== "*") assert.ok(existsSync(join(projectRoot, path)), path);
    assert.ok(owners.includes("@portolan/maintainers"), path);
    for (const owner of owners) assert.match(owner, /^@portolan\/[a-z-]+$/);
  }
});
