/** SECURITY.md: the tests that it names exist, and one that belongs nowhere else. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { dig } from "../support/dig.ts";
import { Portolan, projectRoot } from "../support/portolan.ts";

test("each test that SECURITY.md names is there, under its title", () => {
  const page = readFileSync(join(projectRoot, "SECURITY.md"), "utf8");
  const named = [...page.matchAll(/\[([^\]]+)\]\((test\/[^)]+|src\/[^)]+\.test\.ts)\)/g)];
  assert.ok(named.length > 5);
  for (const [, title = "", file = ""] of named) {
    assert.ok(existsSync(join(projectRoot, file)), file);
    assert.ok(readFileSync(join(projectRoot, file), "utf8").includes(title), `${file}: ${title}`);
  }
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
