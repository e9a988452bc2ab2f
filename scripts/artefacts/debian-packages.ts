import {
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { sha256 } from "./archives.ts";
import { filesIn } from "./components.ts";
import { runTool } from "./tools.ts";

/** A package of Debian, with its files unpacked. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** The folder with its files as they would be in `/`. */
  readonly folder: string;
}

/** Milliseconds for which packages are not asked for again: the parts of one release are to have the same. */
const DAY = 86_400_000;

/**
 * Packages of the distribution that this machine runs, for any architecture, from the servers that apt is set up with. Nothing on the machine changes: apt
 * gets folders of its own.
 * @param cache where the packages are kept
 */
export async function fetchDebianPackages(
  cache: string,
  architecture: string,
  names: readonly string[],
): Promise<DebianPackage[]> {
  const apt = join(cache, `apt-${architecture}`);
  const record = join(apt, `${sha256(names.join(" ")).slice(0, 12)}.json`);
  const age = Date.now() - (statSync(record, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  if (age < DAY) return JSON.parse(readFileSync(record, "utf8"));
  for (const folder of ["state/lists/partial", "cache/archives/partial"])
    mkdirSync(join(apt, folder), { recursive: true });
  writeFileSync(join(apt, "status"), "");
  const options = {
    "Dir::State": join(apt, "state"),
    "Dir::State::status": join(apt, "status"),
    "Dir::Cache": join(apt, "cache"),
    "APT::Architecture": architecture,
    "APT::Architectures": architecture,
    "Acquire::Languages": "none",
    "APT::Sandbox::User": "root",
    "Debug::NoLocking": "true",
  };
  const settings = Object.entries(options).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
  const archives = join(apt, `archives-${process.pid}`);
  mkdirSync(archives);
  try {
    await runTool("apt-get", [...settings, "update"]);
    await runTool("apt-get", [...settings, "download", ...names], { cwd: archives });
    const found: DebianPackage[] = [];
    for (const archive of globSync("*.deb", { cwd: archives }).sort())
      found.push(await unpack(join(archives, archive), cache));
    writeFileSync(record, JSON.stringify(found));
    return found;
  } finally {
    rmSync(archives, { recursive: true, force: true });
  }
}

async function unpack(archive: string, cache: string): Promise<DebianPackage> {
  const format = "$" + "{Package}\n$" + "{Version}\n$" + "{Architecture}\n";
  const fields = await runTool("dpkg-deb", ["--show", `--showformat=${format}`, archive]);
  const [name = "", version = "", architecture = ""] = fields.trim().split("\n");
  const folder = join(cache, `${name}_${version}_${architecture}`);
  if (!existsSync(folder)) {
    const work = `${folder}.${process.pid}`;
    await runTool("dpkg-deb", ["--extract", archive, work]);
    // Links into other packages lead nowhere here, and tools that look at all files of the project stumble over them.
    for (const path of filesIn(work)) if (!existsSync(join(work, path))) rmSync(join(work, path));
    if (existsSync(folder)) rmSync(work, { recursive: true });
    else renameSync(work, folder);
  }
  return { name, version, architecture, folder };
}
