import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { missingTools, skipWithout } from "./system-tools.mjs";
import { makeTree } from "./test-tree.ts";

test("finds tools in the folders of PATH", (t) => {
  const root = makeTree(t, { "one/dig": "", "two/kdig": "", "two/dnsperf": "" });
  chmodSync(join(root, "one/dig"), 0o755);
  chmodSync(join(root, "two/kdig"), 0o755);
  const path = `${join(root, "one")}:${join(root, "nowhere")}:${join(root, "two")}`;
  assert.deepEqual(missingTools(["dig", "kdig", "dnsperf", "nslookup"], path), ["dnsperf", "nslookup"]);
  assert.deepEqual(missingTools(undefined, path), [
    "dnsperf",
    "unbound",
    "dnsmasq",
    "kubectl",
    "chromium",
    "fstrm_capture",
    "dnstap-ldns",
    "etcd",
    "etcdctl",
    "pebble",
    "h2load",
  ]);
});

test("says why a test is skipped", () => {
  assert.equal(skipWithout("sh"), false);
  assert.equal(skipWithout("sh", "no-such-tool", "nor-this"), "not installed: no-such-tool, nor-this");
});

/** Runs provideTools where PATH holds nothing but this apt-get. */
function provide(t: TestContext, aptGet: string, system: { isRoot: boolean; distribution: string }) {
  const root = makeTree(t, {
    "bin/apt-get": `#!/bin/sh\n${aptGet}\n`,
    "os-release": `ID=${system.distribution}\n`,
  });
  chmodSync(join(root, "bin/apt-get"), 0o755);
  const policy = join(root, "policy-rc.d");
  const options = { isRoot: system.isRoot, osRelease: join(root, "os-release"), policy };
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

const RECORD = 'echo "$DEBIAN_FRONTEND $*" >> "$ROOT/calls"';
const PACKAGES =
  "bind9-dnsutils knot-dnsutils dnsperf unbound dnsmasq-base kubernetes-client chromium fstrm-bin dnstap-ldns etcd-server etcd-client pebble nghttp2-client";
const HINT = `On Debian or Ubuntu: sudo apt-get install --no-install-recommends ${PACKAGES}`;

test("installs what is missing on Debian as root", (t) => {
  const install =
    'for tool in dig kdig dnsperf unbound dnsmasq kubectl chromium fstrm_capture dnstap-ldns etcd etcdctl pebble h2load; do : > "$ROOT/bin/$tool"; /bin/chmod 755 "$ROOT/bin/$tool"; done';
  // No service may start while packages are installed, and the machine's own rule is as before when they are.
  const policy = '[ -x "$ROOT/policy-rc.d" ] && echo "services forbidden" >> "$ROOT/calls"';
  const { status, stdout, calls } = provide(t, `${RECORD}\n${policy}\n${install}`, {
    isRoot: true,
    distribution: "debian",
  });
  assert.equal(status, 0);
  assert.match(
    stdout,
    /^Installing bind9-dnsutils, knot-dnsutils, dnsperf, unbound, dnsmasq-base, kubernetes-client, chromium, fstrm-bin, dnstap-ldns, etcd-server, etcd-client, pebble, nghttp2-client \.\.\. \d+\.\d s\n$/,
  );
  assert.deepEqual(calls, [
    "noninteractive update",
    `noninteractive install -y --no-install-recommends ${PACKAGES}`,
    "services forbidden",
  ]);
});

test("says what to install where it must not or cannot", (t) => {
  const said = `Not installed: dig, kdig, dnsperf, unbound, dnsmasq, kubectl, chromium, fstrm_capture, dnstap-ldns, etcd, etcdctl, pebble, h2load. The tests that need them are skipped.\n${HINT}\n`;
  assert.deepEqual(provide(t, RECORD, { isRoot: false, distribution: "debian" }), {
    status: 0,
    stdout: said,
    calls: [],
  });
  assert.deepEqual(provide(t, RECORD, { isRoot: true, distribution: "alpine" }), {
    status: 0,
    stdout: said,
    calls: [],
  });
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
    'for tool in dig kdig dnsperf unbound dnsmasq chromium fstrm_capture dnstap-ldns etcd etcdctl pebble h2load; do : > "$ROOT/bin/$tool"; /bin/chmod 755 "$ROOT/bin/$tool"; done',
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
