import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { canInstallTools, missingTools, skipWithout } from "./system-tools.mjs";
import { makeTree } from "./test-tree.ts";

test("finds tools in the folders of PATH", (t) => {
  const root = makeTree(t, { "one/dig": "", "two/kdig": "", "two/dnsperf": "" });
  chmodSync(join(root, "one/dig"), 0o755);
  chmodSync(join(root, "two/kdig"), 0o755);
  const path = `${join(root, "one")}:${join(root, "nowhere")}:${join(root, "two")}`;
  assert.deepEqual(missingTools(["dig", "kdig", "dnsperf", "nslookup"], path), ["dnsperf", "nslookup"]);
  const file = join(root, "one/dig");
  assert.deepEqual(missingTools([file, `${file}.h`], path), [`${file}.h`]);
});

test("says why a test is skipped", () => {
  assert.equal(skipWithout("sh"), false);
  assert.equal(skipWithout("sh", "no-such-tool", "nor-this"), "not installed: no-such-tool, nor-this");
});

/** Runs provideTools where the only tools are those in a folder of its own, among them this apt-get. */
function provide(t: TestContext, aptGet: string, system: { isRoot: boolean; distribution: string }) {
  const root = makeTree(t, {
    "bin/apt-get": `#!/bin/sh\n${aptGet}\n`,
    "os-release": `ID=${system.distribution}\n`,
  });
  chmodSync(join(root, "bin/apt-get"), 0o755);
  const options = {
    isRoot: system.isRoot,
    osRelease: join(root, "os-release"),
    policy: join(root, "policy-rc.d"),
    tools: TOOLS,
    path: join(root, "bin"),
  };
  const script = `
    import { provideTools } from ${JSON.stringify(join(import.meta.dirname, "system-tools.mjs"))};
    await provideTools(${JSON.stringify(root)}, ${JSON.stringify(options)});`;
  const { status, stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    encoding: "utf8",
    env: { PATH: join(root, "bin"), ROOT: root },
  });
  const calls = join(root, "calls");
  return {
    status,
    stdout,
    calls: existsSync(calls) ? readFileSync(calls, "utf8").trimEnd().split("\n") : [],
  };
}

/** Two of them are in one package. */
const TOOLS = ["dig", "nsupdate", "kubectl", "chromium"];
const PACKAGES = "bind9-dnsutils kubernetes-client chromium";
const RECORD = 'echo "$DEBIAN_FRONTEND $*" >> "$ROOT/calls"';
const SAID = `Not installed: dig, nsupdate, kubectl, chromium. The tests that need them are skipped.
On Debian or Ubuntu: sudo apt-get install --no-install-recommends ${PACKAGES}
`;

/** Shell text that installs these tools. */
function installing(...tools: string[]): string {
  return tools.map((tool) => `: > "$ROOT/bin/${tool}"; /bin/chmod 755 "$ROOT/bin/${tool}"`).join("\n");
}

test("installs what is missing on Debian as root", (t) => {
  // No service may start while packages are installed, and the machine's own rule is as before when they are.
  const policy = '[ -x "$ROOT/policy-rc.d" ] && echo "services forbidden" >> "$ROOT/calls"';
  const { status, stdout, calls } = provide(t, `${RECORD}\n${policy}\n${installing(...TOOLS)}`, {
    isRoot: true,
    distribution: "debian",
  });
  assert.equal(status, 0);
  assert.match(stdout, /^Installing bind9-dnsutils, kubernetes-client, chromium \.\.\. \d+\.\d s\n$/);
  assert.deepEqual(calls, [
    "noninteractive update",
    `noninteractive install -y --no-install-recommends ${PACKAGES}`,
    "services forbidden",
  ]);
});

test("says what to install where it must not or cannot", (t) => {
  for (const system of [
    { isRoot: false, distribution: "debian" },
    { isRoot: true, distribution: "alpine" },
  ])
    assert.deepEqual(provide(t, RECORD, system), { status: 0, stdout: SAID, calls: [] });
});

test("goes on when the installation fails, and says why it did", (t) => {
  const failing = `${RECORD}\necho 'Temporary failure resolving'\nexit 100`;
  const { status, stdout, calls } = provide(t, failing, { isRoot: true, distribution: "debian" });
  assert.equal(status, 0);
  assert.deepEqual(calls, ["noninteractive update"]);
  assert.match(
    stdout,
    /it ended with 100[\s\S]*Temporary failure resolving\n[\s\S]*apt-update\.log\nNot installed: dig/,
  );
});

test("a package that the distribution does not have costs only itself", (t) => {
  const install = [
    RECORD,
    'case "$*" in *kubernetes-client*) echo "Unable to locate package" >&2; exit 100;; update) exit 0;; esac',
    installing("dig", "nsupdate", "chromium"),
  ];
  const { status, stdout, calls } = provide(t, install.join("\n"), { isRoot: true, distribution: "debian" });
  assert.equal(status, 0);
  assert.deepEqual(
    calls.slice(1),
    [PACKAGES, ...PACKAGES.split(" ")].map(
      (names) => `noninteractive install -y --no-install-recommends ${names}`,
    ),
  );
  assert.match(
    stdout,
    /Unable to locate package[\s\S]*\nNot installed: kubectl\. The tests that need them are skipped\.\n/,
  );
});

test("only root on Debian can install all tools", (t) => {
  const root = makeTree(t, { debian: "ID=debian\n", ubuntu: "ID=ubuntu\nID_LIKE=debian\n" });
  const can = (isRoot: boolean, file: string) => canInstallTools({ isRoot, osRelease: join(root, file) });
  assert.deepEqual([can(true, "debian"), can(false, "debian"), can(true, "nothing")], [true, false, false]);
  assert.equal(can(true, "ubuntu"), false);
});
