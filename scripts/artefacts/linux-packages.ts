/** The packages of Debian and of Red Hat's family, by their own tools. */
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, extname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { runLogged } from "../lib/step.mjs";
import { Stage } from "./components.ts";
import type { Edition } from "./edition.ts";
import type { Platform } from "./platforms.ts";
import { cacheOf, emptyFolder, provideProgram, stageNode, stageProgram } from "./program.ts";
import { ingredientsOf, writeSbom } from "./sbom.ts";
import { runTool } from "./tools.ts";

export interface LinuxPackage {
  readonly path: string;
  readonly sbom: string;
}

const AT = "usr/lib/portolan";
const NODE = `${AT}/node`;
const CONFIGURATION = "etc/portolan/Corefile";
/** Node's own bound (its BUILDING.md): Debian 10, Red Hat 8 and newer. */
const OLDEST_GLIBC = "2.28";

type Kind = "deb" | "rpm";

export async function makeLinuxPackages(
  edition: Edition,
  platform: Platform,
  out: string,
): Promise<LinuxPackage[]> {
  await provideProgram(edition);
  await writeManPages(edition);
  const made: LinuxPackage[] = [];
  for (const kind of ["deb", "rpm"] as const) {
    const work = emptyFolder(join(cacheOf(edition), `${kind}-${platform.architecture}-${process.pid}`));
    try {
      const stage = await stagePackage(edition, platform, join(work, "root"), kind);
      const build = kind === "deb" ? buildDeb : buildRpm;
      const path = await build({ edition, platform, work, out, stage });
      made.push({ path, sbom: writeSbom(edition, path, ingredientsOf(stage)) });
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  return made;
}

export function writeManPages({ root }: Edition): Promise<void> {
  return runLogged(process.execPath, [join("scripts", "write-man-pages.ts")], {
    cwd: root,
    log: join(root, ".cache", "man.log"),
  });
}

async function stagePackage(
  edition: Edition,
  platform: Platform,
  folder: string,
  kind: Kind,
): Promise<Stage> {
  const { root, manifest } = edition;
  const stage = new Stage(folder);
  await stageNode(stage, edition, platform, { at: NODE, licence: "usr/share/doc/portolan/LICENSE.node" });
  await stageProgram(stage, edition, platform, { at: AT, interpreter: `/${NODE}` });
  const completions = await writtenCompletions(root, kind);
  const facts = { version: edition.version, purl: `pkg:npm/${manifest.name}@${manifest.version}` };
  stage.add(
    { type: "application", name: `${manifest.name}-system`, licence: manifest.license, ...facts },
    (files) => {
      const deploy = join(root, "deploy", "linux");
      files.link("../lib/portolan/bin/portolan", "usr/bin/portolan");
      files.copy(join(deploy, "Corefile"), CONFIGURATION);
      files.copy(join(deploy, "portolan.service"), "usr/lib/systemd/system/portolan.service");
      files.copy(join(deploy, "portolan.sysusers"), "usr/lib/sysusers.d/portolan.conf");
      files.copy(join(root, "LICENSE"), "usr/share/doc/portolan/copyright");
      for (const [path, text] of Object.entries(completions))
        files.write(path, (file) => writeFileSync(file, text));
      for (const name of readdirSync(join(root, "man")))
        files.write(`usr/share/man/man${extname(name).slice(1)}/${name}.gz`, (file) =>
          writeFileSync(file, gzipSync(readFileSync(join(root, "man", name)), { level: 9 })),
        );
    },
  );
  stage.setRights();
  return stage;
}

/** What `portolan completion` prints, by where the shells of the distribution look for it. */
async function writtenCompletions(root: string, kind: Kind): Promise<Record<string, string>> {
  const places = {
    bash: "usr/share/bash-completion/completions/portolan",
    fish: "usr/share/fish/vendor_completions.d/portolan.fish",
    zsh: `usr/share/zsh/${kind === "deb" ? "vendor-completions" : "site-functions"}/_portolan`,
  };
  const texts: Record<string, string> = {};
  for (const [shell, path] of Object.entries(places))
    texts[path] = await runTool(process.execPath, [join(root, "bin", "portolan"), "completion", shell]);
  return texts;
}

interface Build {
  readonly edition: Edition;
  readonly platform: Platform;
  readonly work: string;
  readonly out: string;
  readonly stage: Stage;
}

/** What goes before the version in both orders of versions. */
function versionOf({ version }: Edition): string {
  return version.replace("-dirty", "~dirty");
}

async function buildDeb({ edition, platform, work, out, stage }: Build): Promise<string> {
  const { manifest, root, time } = edition;
  const control = join(stage.folder, "DEBIAN");
  mkdirSync(control);
  const size = stage.components
    .flatMap(({ files }) => files)
    .reduce((sum, path) => sum + Math.ceil(readSize(join(stage.folder, path)) / 1024), 0);
  writeFileSync(
    join(control, "control"),
    [
      `Package: ${manifest.name}`,
      `Version: ${versionOf(edition)}`,
      `Architecture: ${platform.architecture}`,
      "Maintainer: The Portolan developers <portolan@invalid>",
      `Installed-Size: ${size}`,
      `Depends: libc6 (>= ${OLDEST_GLIBC}), libgcc-s1, libstdc++6 (>= 8), passwd`,
      "Recommends: ca-certificates",
      "Suggests: bind9-dnsutils",
      "Section: net",
      "Priority: optional",
      `Description: ${manifest.description.split(":")[0]}`,
      " Runs CoreDNS configurations unchanged. The service does not start by itself, as",
      " the machine may have a resolver already: systemctl enable --now portolan",
      "",
    ].join("\n"),
  );
  writeFileSync(join(control, "conffiles"), `/${CONFIGURATION}\n`);
  for (const name of ["postinst", "prerm", "postrm"]) {
    copyFileSync(join(root, "deploy", "linux", `${name}.sh`), join(control, name));
    chmodSync(join(control, name), 0o755);
  }
  stage.setRights();
  const path = join(out, `${manifest.name}_${versionOf(edition)}_${platform.architecture}.deb`);
  await runTool("dpkg-deb", ["--root-owner-group", "-Zzstd", "-z12", "--build", stage.folder, path], {
    cwd: work,
    env: { SOURCE_DATE_EPOCH: String(time) },
  });
  rmSync(control, { recursive: true });
  return path;
}

async function buildRpm({ edition, platform, work, out, stage }: Build): Promise<string> {
  const { manifest, root, time } = edition;
  const script = (name: string): string =>
    readFileSync(join(root, "deploy", "linux", `${name}.sh`), "utf8").replace(/^#!.*\n/, "");
  const files = stage.components.flatMap((component) => component.files).sort();
  const own = files.filter((path) => path !== CONFIGURATION).map((path) => `"/${path}"`);
  // RPM keeps no folder that no package has.
  const folders = [AT, "etc/portolan", "usr/share/doc/portolan"].map((path) => `%dir "/${path}"`);
  const specification = [
    `Name: ${manifest.name}`,
    `Version: ${versionOf(edition)}`,
    "Release: 1",
    `Summary: ${manifest.description.split(":")[0]}`,
    `License: ${manifest.license}`,
    "AutoReqProv: no",
    `Requires: libc.so.6(GLIBC_${OLDEST_GLIBC})(64bit), libstdc++.so.6()(64bit), libgcc_s.so.1()(64bit), /usr/sbin/useradd`,
    "Recommends: ca-certificates",
    "%description",
    "Runs CoreDNS configurations unchanged. The service does not start by itself, as the machine may have a resolver already:",
    "systemctl enable --now portolan",
    "%install",
    'cp -a "%{stage}/." "%{buildroot}/"',
    "%files",
    "%defattr(-,root,root,-)",
    ...folders,
    `%config(noreplace) "/${CONFIGURATION}"`,
    ...own,
    "%post",
    script("postinst"),
    "%preun",
    script("prerm"),
    "%postun",
    script("postrm"),
    "",
  ].join("\n");
  const spec = join(work, "portolan.spec");
  writeFileSync(spec, specification);
  const macros = {
    _topdir: join(work, "rpm"),
    stage: stage.folder,
    // Nothing is to be changed that is packed: no symbols taken out, no links, no other compression of pages.
    __os_install_post: "%{nil}",
    debug_package: "%{nil}",
    _build_id_links: "none",
    _binary_payload: "w12.zstdio",
    // The same sources make the same package.
    _buildhost: manifest.name,
    use_source_date_epoch_as_buildtime: "1",
    clamp_mtime_to_source_date_epoch: "1",
  };
  await runTool(
    "rpmbuild",
    [
      ...Object.entries(macros).flatMap(([name, value]) => ["--define", `${name} ${value}`]),
      "--target",
      `${platform.rpm}-linux`,
      "-bb",
      spec,
    ],
    { cwd: work, env: { SOURCE_DATE_EPOCH: String(time) } },
  );
  const folder = join(work, "rpm", "RPMS", platform.rpm);
  const [name = ""] = readdirSync(folder);
  const path = join(out, basename(name));
  copyFileSync(join(folder, name), path);
  return path;
}

function readSize(path: string): number {
  return lstatSync(path).size;
}
