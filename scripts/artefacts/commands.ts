import { statSync } from "node:fs";
import { relative } from "node:path";
import type { Edition } from "./edition.ts";
import { makeImages } from "./image.ts";
import type { Platform } from "./platforms.ts";

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
];

function megabytes(octets: number): string {
  return `${(octets / 1e6).toFixed(1)} MB`;
}

/** One line about a file that was made. */
export function fileLine({ root }: Edition, path: string): string {
  return `${relative(root, path)}  ${megabytes(statSync(path).size)}`;
}
