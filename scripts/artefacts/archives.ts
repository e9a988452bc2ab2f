import { createHash } from "node:crypto";
import { createReadStream, readFileSync } from "node:fs";
import { constants, zstdCompressSync } from "node:zlib";
import { runTool } from "./tools.ts";

/**
 * Packs a folder so that the same files make the same octets: in order, of root, of one time, with the rights that follow from whether a file is a
 * program.
 * @param time seconds since the epoch
 */
export async function packTar(
  folder: string,
  archive: string,
  time: number,
  members: readonly string[] = ["."],
): Promise<void> {
  await runTool("tar", [
    "--create",
    "--format=gnu",
    "--sort=name",
    `--mtime=@${time}`,
    "--owner=0",
    "--group=0",
    "--numeric-owner",
    "--mode=u=rwX,go=rX",
    "--hard-dereference",
    "--directory",
    folder,
    "--file",
    archive,
    ...members,
  ]);
}

/** A level that takes a few seconds for Node; the highest one takes minutes, and saves a tenth. */
const LEVEL = 12;
/** 128 MiB: what every reader of zstd in a container engine takes. */
const WINDOW_LOG = 27;

/** Compresses as Node's own zstd does: the result depends on nothing but the pinned Node. */
export function compress(octets: Uint8Array): Buffer {
  return zstdCompressSync(octets, {
    params: {
      [constants.ZSTD_c_compressionLevel]: LEVEL,
      [constants.ZSTD_c_windowLog]: WINDOW_LOG,
      [constants.ZSTD_c_enableLongDistanceMatching]: 1,
      [constants.ZSTD_c_checksumFlag]: 1,
    },
  });
}

/** SHA-256 in hexadecimal. */
export function sha256(octets: Uint8Array | string): string {
  return createHash("sha256").update(octets).digest("hex");
}

export function sha256OfFile(path: string): string {
  return sha256(readFileSync(path));
}

/** As {@link sha256OfFile}, for files that are too large to be read at once. */
export async function sha256OfLargeFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path)) hash.update(chunk);
  return hash.digest("hex");
}
