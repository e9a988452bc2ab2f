/** Reads zone keys from the file pairs of `dnssec-keygen`. */
import { type KeyPair, KeyPairError, readKeyPair } from "../../dns/dnssec/key-pair.ts";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { SetupError } from "../../plugin/contract/define-plugin.ts";

/**
 * @param path of the pair, with or without `.key` or `.private`
 * @throws SetupError with the file at fault
 */
export async function readKeyFiles(path: string): Promise<KeyPair> {
  const base = path.replace(/\.(?:key|private)$/, "");
  const publicText = await readKeyFile(`${base}.key`);
  const privateText = await readKeyFile(`${base}.private`);
  try {
    return readKeyPair(publicText, privateText);
  } catch (error) {
    if (error instanceof KeyPairError) throw new SetupError(`${base}.${error.file}: ${error.message}`);
    throw error;
  }
}

async function readKeyFile(path: string): Promise<string> {
  try {
    return await readTextFile(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT")
      throw new SetupError(`open ${path}: no such file or directory`);
    throw new SetupError(`cannot read the key ${path}: ${fileFault(error)}`);
  }
}
