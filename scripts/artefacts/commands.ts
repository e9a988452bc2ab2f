import { copyFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { makeChart } from "./chart.ts";
import type { Edition } from "./edition.ts";
import { makeExecutable } from "./executable.ts";
import { makeImages } from "./image.ts";
import { makeLinuxPackages } from "./linux-packages.ts";
import { makeNpmArchive } from "./npm-archive.ts";
import type { Platform } from "./platforms.ts";
import { cacheOf, emptyFolder } from "./program.ts";
import { makeAll, makeRelease } from "./release.ts";

/** What a command makes, and where to. */
export interface Order {
  readonly edition: Edition;
  readonly platforms: readonly Platform[];
  readonly out: string;
}

export interface Command {
  readonly name: string;
  /** For `--help`. */
  readonly about: string;
  /** @returns lines that say what was made */
  make(order: Order): Promise<readonly string[]>;
}

export const COMMANDS: readonly Command[] = [
  {
    name: "npm",
    about: "the package for npm: what npm pack makes, with its bill of materials",
    async make({ edition, out }) {
      return [fileLine(edition, (await makeNpmArchive(edition, out)).path)];
    },
  },
  {
    name: "image",
    about: "the container image, as an OCI layout and as archives",
    async make({ edition, platforms, out }) {
      const { folder, archives, images } = await makeImages(edition, platforms, out);
      return [
        ...images.map(
          ({ platform, manifest, size }) =>
            `linux/${platform.architecture}  ${megabytes(size)} compressed  ${manifest.digest}`,
        ),
        ...[folder, ...archives].map((path) => relative(edition.root, path)),
      ];
    },
  },
  {
    name: "executable",
    about: "the program in one file",
    async make({ edition, platforms, out }) {
      const lines: string[] = [];
      for (const platform of platforms)
        lines.push(fileLine(edition, (await makeExecutable(edition, platform, out)).path));
      return lines;
    },
  },
  {
    name: "packages",
    about: "packages for Debian and for Red Hat's family",
    async make({ edition, platforms, out }) {
      const lines: string[] = [];
      for (const platform of platforms)
        for (const { path } of await makeLinuxPackages(edition, platform, out))
          lines.push(fileLine(edition, path));
      return lines;
    },
  },
  {
    name: "chart",
    about: "the Helm chart, as an archive and as an artefact of OCI",
    async make({ edition, out }) {
      const { path, artefact } = await makeChart(edition, out);
      return [fileLine(edition, path), fileLine(edition, artefact)];
    },
  },
  {
    name: "sbom",
    about: "only the bills of materials of all artefacts: they are made, and thrown away",
    async make({ edition, platforms, out }) {
      const work = emptyFolder(join(cacheOf(edition), `sbom-${process.pid}`));
      try {
        await makeAll(edition, platforms, work);
        const bills = readdirSync(work).filter((name) => name.endsWith(".cdx.json"));
        for (const name of bills) copyFileSync(join(work, name), join(out, name));
        return bills.sort().map((name) => fileLine(edition, join(out, name)));
      } finally {
        rmSync(work, { recursive: true, force: true });
      }
    },
  },
  {
    name: "release",
    about: "all of these, with hashes, notes and a statement of provenance",
    make: ({ edition, platforms, out }) => makeRelease(edition, platforms, out),
  },
];

function megabytes(octets: number): string {
  return `${(octets / 1e6).toFixed(1)} MB`;
}

/** One line about a file that was made. */
function fileLine({ root }: Edition, path: string): string {
  return `${relative(root, path)}  ${megabytes(statSync(path).size)}`;
}
