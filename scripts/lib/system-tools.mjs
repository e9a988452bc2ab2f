import { accessSync, constants, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { runLogged, StepFailure, step } from "./step.mjs";

/** Programs that the black-box tests run, and the Debian packages that have them. */
const DEBIAN_PACKAGES = new Map([
  ["dig", "bind9-dnsutils"],
  ["kdig", "knot-dnsutils"],
  ["dnsperf", "dnsperf"],
  ["unbound", "unbound"],
  ["dnsmasq", "dnsmasq-base"],
  ["kubectl", "kubernetes-client"],
  ["chromium", "chromium"],
  ["fstrm_capture", "fstrm-bin"],
  ["dnstap-ldns", "dnstap-ldns"],
  ["etcd", "etcd-server"],
  ["etcdctl", "etcd-client"],
  ["pebble", "pebble"],
  ["h2load", "nghttp2-client"],
]);

/** Asked by Debian's packages whether the service that they bring may be started. */
const POLICY = "/usr/sbin/policy-rc.d";

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
 * The tools that are not in PATH.
 * @param {Iterable<string>} [tools]
 * @param {string} [path]
 */
export function missingTools(tools = DEBIAN_PACKAGES.keys(), path = process.env.PATH ?? "") {
  const folders = path.split(delimiter);
  return [...tools].filter((tool) => !folders.some((folder) => isExecutable(join(folder, tool))));
}

/**
 * Installs the tools that are missing where that can be done without asking: on Debian, as root. Elsewhere says
 * what to install; the tests that need them are skipped.
 * @param {string} root the project's folder
 * @param {{ isRoot?: boolean, osRelease?: string, policy?: string }} [system] the user, the file that names the
 *   distribution, and the one that package installations ask whether services may start
 */
export async function provideTools(root, system = {}) {
  const { isRoot = process.getuid?.() === 0, osRelease = "/etc/os-release", policy = POLICY } = system;
  const missing = missingTools();
  if (missing.length === 0) return;
  const packages = missing.map(packageOf);
  if (!isRoot || !isDebian(osRelease)) {
    explainMissing(missing, packages);
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
  const stillMissing = missingTools();
  if (stillMissing.length > 0) explainMissing(stillMissing, stillMissing.map(packageOf));
}

/** @param {string} tool */
function packageOf(tool) {
  return DEBIAN_PACKAGES.get(tool) ?? tool;
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

/**
 * @param {string[]} missing
 * @param {string[]} packages
 */
function explainMissing(missing, packages) {
  console.log(`Not installed: ${missing.join(", ")}. The tests that need them are skipped.`);
  console.log(`On Debian or Ubuntu: sudo apt-get install --no-install-recommends ${packages.join(" ")}`);
}

/** @param {string} osRelease */
function isDebian(osRelease) {
  return existsSync(osRelease) && /^ID(_LIKE)?=.*\bdebian\b/m.test(readFileSync(osRelease, "utf8"));
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
