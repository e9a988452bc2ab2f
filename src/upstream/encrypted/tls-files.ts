/** Reads the files of `tls [CERT KEY [CA]] | [CA]`. */

import type { SecureContext } from "node:tls";
import { readTextFile } from "../../lib/files/bounded-file.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { SetupError } from "../../plugin/contract/define-plugin.ts";
import type { Site } from "../../plugin/contract/site.ts";
import type { TlsMaterial } from "./tls-client.ts";

/** @throws SetupError */
export async function readTlsFiles(files: readonly string[], site: Site): Promise<TlsMaterial> {
  const texts = await Promise.all(
    files.map(async (file) => {
      try {
        return await readTextFile(site.resolvePath(file));
      } catch (error) {
        throw new SetupError(`tls: error reading ${file}: ${fileFault(error)}`);
      }
    }),
  );
  if (texts.length === 1) return { authorities: texts[0] };
  const [certificate, key, authorities] = texts;
  return { certificate, key, authorities };
}

/** The context of these files, which the option `tls` names. @throws SetupError */
export async function tlsContext(material: TlsMaterial): Promise<SecureContext> {
  const { clientContext } = await import("./tls-client.ts");
  try {
    return clientContext(material);
  } catch (error) {
    throw new SetupError(`tls: ${messageOf(error)}`);
  }
}
