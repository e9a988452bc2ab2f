import { accessSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { runLogged, StepFailure, step } from "./step.mjs";

/** The programs and files that tests need beside Node, and the Debian package of each. */
const DEBIAN_PACKAGES = new Map([
  ["dig", "bind9-dnsutils"],
  ["delv", "bind9-dnsutils"],
  ["nsupdate", "bind9-dnsutils"],
  ["named", "bind9"],
  ["named-rrchecker", "bind9"],
  ["named-checkzone", "bind9-utils"],
  ["dnssec-signzone", "bind9-utils"],
  ["kdig", "knot-dnsutils"],
  ["knotd", "knot"],
  ["nsd", "nsd"],
  ["unbound", "unbound"],
  ["dnsmasq", "dnsmasq-base"],
  ["ldns-verify-zone", "ldnsutils"],
  ["dnsperf", "dnsperf"],
  ["h2load", "nghttp2-client"],
  ["curl", "curl"],
  ["openssl", "openssl"],
  ["fstrm_capture", "fstrm-bin"],
  ["dnstap-ldns", "dnstap-ldns"],
  ["kubectl", "kubernetes-client"],
  ["etcd", "etcd-server"],
  ["etcdctl", "etcd-client"],
  ["pebble", "pebble"],
  ["promtool", "prometheus"],
  ["chromium", "chromium"],
  ["ip", "iproute2"],
  ["nft", "nftables"],
  ["iptables", "iptables"],
  ["bash", "bash"],
  ["fish", "fish"],
  ["zsh", "zsh"],
  ["script", "bsdutils"],
  ["man", "man-db"],
  ["mandoc", "mandoc"],
  ["groff", "groff-base"],
  ["gcc", "gcc"],
  ["musl-gcc", "musl-tools"],
  ["aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"],
  ["x86_64-linux-gnu-strip", "binutils-x86-64-linux-gnu"],
  ["aarch64-linux-gnu-strip", "binutils-aarch64-linux-gnu"],
  ["apt-get", "apt"],
  ["dpkg-deb", "dpkg"],
  ["tar", "tar"],
  ["npm", "npm"],
  ["rpmbuild", "rpm"],
  ["zstd", "zstd"],
  ["runc", "runc"],
  ["skopeo", "skopeo"],
  ["systemd-analyze", "systemd"],
  ["qemu-aarch64-static", "qemu-user-static"],
  // The compilers only recommend the headers.
  ["/usr/include/stdio.h", "libc6-dev"],
  ["/usr/aarch64-linux-gnu/include/stdio.h", "libc6-dev-arm64-cross"],
]);

/** PATH with the folders of servers and of root's tools, which the PATH of other users may lack. */
export const TOOL_PATH = [process.env.PATH ?? "", "/usr/local/sbin", "/usr/sbin", "/sbin"].join(delimiter);

const IS_ROOT = process.getuid?.() === 0;
const OS_RELEASE = "/etc/os-release";

/** Asked by Debian's packages whether the service that they bring may be started. */
const POLICY = "/usr/sbin/policy-rc.d";

/**
 * What a test of `provideTools` puts in place of this machine: the user, the file that names the distribution, the one that package
 * installations ask whether services may start, and the tools with the folders to look for them in.
 * @typedef {{ isRoot?: boolean, osRelease?: string, policy?: string, tools?: readonly string[], path?: string }} System
 */

/**
 * The Debian package that brings a tool.
 * @param {string} tool
 */
export function debianPackageOf(tool) {
  return DEBIAN_PACKAGES.get(tool) ?? tool;
}

/**
 * For the `skip` option of a test: why it cannot run here, or false where it can.
 * @param {...string} tools such as "dig"
 * @returns {string | false}
 */
export function skipWithout(...tools) {
  const missing = missingTools(tools);
  return missing.length === 0 ? false : `not installed: ${missing.join(", ")}`;
}

/**
 * The tools that are not installed.
 * @param {Iterable<string>} [tools] names of programs, and absolute paths of files
 * @param {string} [path] the folders to look in
 */
export function missingTools(tools = DEBIAN_PACKAGES.keys(), path = TOOL_PATH) {
  const folders = path.split(delimiter);
  return [...tools].filter((tool) =>
    isAbsolute(tool) ? !existsSync(tool) : !folders.some((folder) => isExecutable(join(folder, tool))),
  );
}

/**
 * Whether `provideTools` installs every tool on this machine: Debian itself, as root. Distributions made from it lack a package or two.
 * @param {System} [system]
 */
export function canInstallTools({ isRoot = IS_ROOT, osRelease = OS_RELEASE } = {}) {
  return isRoot && isDebian(osRelease, /^ID=debian$/m);
}

/**
 * Installs the tools that are missing where that can be done without asking: on Debian, as root. Elsewhere says
 * what to install; the tests that need them are skipped.
 * @param {string} root the project's folder
 * @param {System} [system]
 */
export async function provideTools(root, system = {}) {
  const { policy = POLICY, tools = [...DEBIAN_PACKAGES.keys()], path = TOOL_PATH } = system;
  const missing = missingTools(tools, path);
  if (missing.length === 0) return;
  const packages = packagesOf(missing);
  const { isRoot = IS_ROOT, osRelease = OS_RELEASE } = system;
  if (!isRoot || !isDebian(osRelease)) {
    explainMissing(missing);
    return;
  }
  try {
    await step(`Installing ${packages.join(", ")}`, async () => {
      const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
      const log = (/** @type {string} */ name) => join(root, ".cache", name);
      await runLogged("apt-get", ["update"], { cwd: root, env, log: log("apt-update.log") });
      const install = (/** @type {string[]} */ names) =>
        runLogged("apt-get", ["install", "-y", "--no-install-recommends", ...names], {
          cwd: root,
          env,
          log: log("apt-install.log"),
        });
      await withoutServices(policy, () => installAllOrEach(packages, install));
    });
  } catch (error) {
    if (!(error instanceof StepFailure)) throw error;
    console.log(error.message);
  }
  const stillMissing = missingTools(tools, path);
  if (stillMissing.length > 0) explainMissing(stillMissing);
}

/** @param {readonly string[]} tools */
function packagesOf(tools) {
  return [...new Set(tools.map(debianPackageOf))];
}

/**
 * Installs what can be: a package that the distribution does not have (Ubuntu has no kubernetes-client) costs only itself.
 * @param {string[]} packages
 * @param {(packages: string[]) => Promise<void>} install
 */
async function installAllOrEach(packages, install) {
  try {
    await install(packages);
  } catch (error) {
    if (packages.length === 1 || !(error instanceof StepFailure)) throw error;
    /** @type {StepFailure | undefined} */
    let last;
    for (const name of packages) {
      await install([name]).catch((/** @type {unknown} */ failure) => {
        if (!(failure instanceof StepFailure)) throw failure;
        last = failure;
      });
    }
    if (last !== undefined) throw last;
  }
}

/**
 * Runs an installation that starts no service: the tests want the program unbound, not a resolver on this machine's port 53.
 * @param {string} policy
 * @param {() => Promise<void>} install
 */
async function withoutServices(policy, install) {
  if (existsSync(policy)) return install();
  writeFileSync(policy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    return await install();
  } finally {
    rmSync(policy, { force: true });
  }
}

/** @param {readonly string[]} missing */
function explainMissing(missing) {
  const packages = packagesOf(missing).join(" ");
  console.log(`Not installed: ${missing.join(", ")}. The tests that need them are skipped.`);
  console.log(`On Debian or Ubuntu: sudo apt-get install --no-install-recommends ${packages}`);
}

/**
 * @param {string} osRelease
 * @param {RegExp} [line] what the file says there; also of distributions that install Debian's packages by the same commands
 */
function isDebian(osRelease, line = /^ID(_LIKE)?=.*\bdebian\b/m) {
  return existsSync(osRelease) && line.test(readFileSync(osRelease, "utf8"));
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
