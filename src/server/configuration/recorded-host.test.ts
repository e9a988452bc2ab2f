import assert from "node:assert/strict";
import { test } from "node:test";
import type { CorefileHost, FileContent } from "../../corefile/host.ts";
import { RecordedHost } from "./recorded-host.ts";

class ChangingHost implements CorefileHost {
  readonly files: Record<string, string> = { one: "text" };
  names: string[] | undefined = ["b", "a"];
  variable: string | undefined = "value";

  readFile(path: string): FileContent {
    const text = this.files[path];
    return text === undefined ? { kind: "missing" } : { kind: "text", text };
  }

  list(): readonly string[] | undefined {
    return this.names;
  }

  environmentVariable(): string | undefined {
    return this.variable;
  }
}

const changes: readonly (readonly [string, (host: ChangingHost) => void, isCurrent: boolean])[] = [
  ["nothing", () => undefined, true],
  ["a file", ({ files }) => void Object.assign(files, { one: "another text" }), false],
  ["a file that goes", ({ files }) => void Reflect.deleteProperty(files, "one"), false],
  ["a file that was missed", ({ files }) => void Object.assign(files, { two: "" }), false],
  ["a file that was never read", ({ files }) => void Object.assign(files, { three: "" }), true],
  ["the order of a directory", ({ names }) => void names?.reverse(), true],
  ["a name in a directory", ({ names }) => void names?.push("c"), false],
  ["a directory that goes", (host) => void Object.assign(host, { names: undefined }), false],
  ["a variable", (host) => void Object.assign(host, { variable: "" }), false],
];

for (const [what, change, isCurrent] of changes)
  test(`a host knows of a change: ${what}`, () => {
    const host = new ChangingHost();
    const recorded = new RecordedHost(host);
    assert.deepEqual(recorded.readFile("one"), { kind: "text", text: "text" });
    assert.deepEqual(recorded.readFile("two"), { kind: "missing" });
    assert.deepEqual(recorded.list("folder"), ["b", "a"]);
    assert.equal(recorded.environmentVariable("NAME"), "value");
    change(host);
    assert.equal(recorded.isCurrent, isCurrent);
    // What is read later for another purpose is not what the configuration was read from.
    recorded.readFile("one");
    recorded.readFile("two");
    assert.equal(recorded.isCurrent, isCurrent);
  });
