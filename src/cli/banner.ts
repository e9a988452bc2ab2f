import { version } from "../lib/text/version.ts";

/** The two lines of `-version` (docs/spec/coredns-behaviour.md#starting). */
export function banner(): string {
  const architecture = process.arch === "x64" ? "amd64" : process.arch;
  return `Portolan-${version}\n${process.platform}/${architecture}, node${process.versions.node}, ${process.env.PORTOLAN_COMMIT ?? "unknown"}\n`;
}
