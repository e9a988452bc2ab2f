/**
 * The files of an ACME client: the key of its account, and each certificate with its key. Readable by their owner
 * only.
 */
import type { KeyObject } from "node:crypto";
import { access, constants, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { readTextFile } from "../../../lib/files/bounded-file.ts";
import { nodeCrypto } from "../../../lib/files/node-modules.ts";
import { AccountKey } from "./json-web-signature.ts";

/** A certificate with its key. */
export interface StoredCertificate {
  /** PEM: the certificate first, then the intermediates. */
  readonly chain: string;
  /** PEM. */
  readonly key: string;
  /** DER of the certificate. */
  readonly raw: Buffer;
  /** Milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
}

/** @throws Error for an invalid certificate, or if the key does not match */
export function readCertificate(chain: string, key: string): StoredCertificate {
  const { X509Certificate, createPrivateKey } = nodeCrypto();
  const certificate = new X509Certificate(chain);
  if (!certificate.checkPrivateKey(createPrivateKey(key)))
    throw new Error("the key does not match the certificate");
  return {
    chain,
    key,
    raw: certificate.raw,
    notBefore: Date.parse(certificate.validFrom),
    notAfter: Date.parse(certificate.validTo),
  };
}

export class AcmeStorage {
  readonly #folder: string;

  /** @param folder for one CA and one account */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Checks that the folder is writable. @throws the error of the file system */
  async probe(): Promise<void> {
    for (let folder = this.#folder; ; folder = dirname(folder)) {
      try {
        await access(folder, constants.W_OK | constants.X_OK);
        return;
      } catch (error) {
        if (codeOf(error) !== "ENOENT" || folder === dirname(folder)) throw error;
      }
    }
  }

  /** The account's key, created and stored at the first call. */
  async accountKey(): Promise<AccountKey> {
    const { createPrivateKey } = nodeCrypto();
    const path = join(this.#folder, "account.pem");
    const kept = await readIfThere(path);
    if (kept !== undefined) return new AccountKey(createPrivateKey(kept));
    const key = newKey();
    await this.#write(path, pemOf(key));
    return new AccountKey(key);
  }

  /** @returns nothing if there is no file @throws Error for a file that is not a certificate with its key */
  async read(domain: string): Promise<StoredCertificate | undefined> {
    const text = await readIfThere(this.#pathOf(domain));
    if (text === undefined) return undefined;
    const [key, ...chain] = text.split(/(?=-----BEGIN CERTIFICATE-----)/);
    return readCertificate(chain.join(""), key ?? "");
  }

  async write(domain: string, { key, chain }: StoredCertificate): Promise<void> {
    // One file, so that certificate and key are replaced in one step.
    await this.#write(this.#pathOf(domain), `${key.trimEnd()}\n${chain.trimEnd()}\n`);
  }

  async #write(path: string, text: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const temporary = `${path}.new`;
    await rm(temporary, { force: true });
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  }

  #pathOf(domain: string): string {
    return join(this.#folder, `${domain.replace("*", "wildcard_")}.pem`);
  }
}

export function newKey(): KeyObject {
  return nodeCrypto().generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
}

export function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readTextFile(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
