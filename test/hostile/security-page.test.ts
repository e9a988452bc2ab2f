/** SECURITY.md: the tests and counters that it names exist, and one that belongs nowhere else. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { hasTest, namedTests } from "../../scripts/lib/named-tests.ts";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { dig } from "../support/dig.ts";
import { Portolan, projectRoot } from "../support/portolan.ts";

const page = readFileSync(join(projectRoot, "SECURITY.md"), "utf8");

test("each test that SECURITY.md names is there, under its title", () => {
  const named = namedTests(page);
  assert.ok(named.length > 40);
  for (const { title, file } of named) {
    assert.ok(existsSync(join(projectRoot, file)), file);
    assert.ok(hasTest(readFileSync(join(projectRoot, file), "utf8"), title), `${file}: ${title}`);
  }
});

test("each counter that SECURITY.md names is one of a plugin or of the server", () => {
  const named = new Set(
    Array.from(page.matchAll(/`((?:portolan|coredns)_[a-z_]+)/g), ([, name = ""]) => name),
  );
  assert.ok(named.size > 10);
  const sources = globSync("src/**/*.ts", { cwd: projectRoot }).map((file) =>
    readFileSync(join(projectRoot, file), "utf8"),
  );
  for (const name of named)
    assert.ok(
      sources.some((text) => text.includes(`"${name}"`)),
      name,
    );
});

test("a rewrite does not lead around acl: the rewritten name is blocked", {
  skip: skipWithout("dig"),
}, async () => {
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    acl admin.test {
        block
    }
    rewrite name public.test secret.admin.test
    hosts {
        192.0.2.1 secret.admin.test open.test
    }
}
`,
  );
  assert.equal((await dig(server, "open.test", "A")).status, "NOERROR");
  assert.equal((await dig(server, "secret.admin.test", "A")).status, "REFUSED");
  assert.equal((await dig(server, "public.test", "A")).status, "REFUSED");
});
