/** Credentials from each of the sources that there are. */
import { readBoundedFile } from "../../../lib/files/bounded-file.ts";
import { fileFault } from "../../../lib/files/file-fault.ts";
import type { Clock } from "../../../lib/time/clock.ts";
import type { CredentialSource, Material } from "./access.ts";
import { CredentialError } from "./api-error.ts";
import type { Credential, Credentials } from "./credential.ts";
import { ExecCredentials } from "./exec-credentials.ts";
import type { ProcessEnvironment } from "./proxy.ts";

export function makeCredentials(
  source: CredentialSource,
  clock: Clock,
  environment: ProcessEnvironment,
): Credentials {
  switch (source.kind) {
    case "none":
      return new FixedCredentials({});
    case "token":
      return new FixedCredentials({ authorization: `Bearer ${source.token}` });
    case "basic": {
      const pair = Buffer.from(`${source.username}:${source.password}`).toString("base64");
      return new FixedCredentials({ authorization: `Basic ${pair}` });
    }
    case "tokenFile":
      return new TokenFile(source.file, clock);
    case "exec":
      return new ExecCredentials(source.exec, clock, environment);
  }
}

class FixedCredentials implements Credentials {
  readonly #credential: Credential;

  constructor(credential: Credential) {
    this.#credential = credential;
  }

  async current(): Promise<Credential> {
    return this.#credential;
  }

  refused(): void {
    // There is no other.
  }
}

/** A token that is renewed on disk, as the kubelet does for every pod. */
class TokenFile implements Credentials {
  readonly #file: string;
  readonly #cached: CachedFile;

  constructor(file: string, clock: Clock) {
    this.#file = file;
    this.#cached = new CachedFile({ file }, clock);
  }

  async current(): Promise<Credential> {
    let octets: Uint8Array;
    try {
      octets = await this.#cached.read();
    } catch (error) {
      throw new CredentialError(`cannot read the token file ${this.#file}: ${fileFault(error)}`);
    }
    const token = Buffer.from(octets).toString("latin1").trim();
    if (!/^[\x21-\x7e]+$/.test(token))
      throw new CredentialError(`the token file ${this.#file} holds no token`);
    return { authorization: `Bearer ${token}` };
  }

  refused(): void {
    this.#cached.forget();
  }
}

/** As long as client-go keeps what it read. */
const MAX_FILE_AGE_MS = 60_000;

/** The content of a file that may change, read anew once it is a minute old. */
export class CachedFile {
  readonly #material: Material;
  readonly #clock: Clock;
  #content: Uint8Array | undefined;
  #readAt = 0;

  constructor(material: Material, clock: Clock) {
    this.#material = material;
    this.#clock = clock;
  }

  /** Empty for what is no file. */
  get file(): string {
    return "file" in this.#material ? this.#material.file : "";
  }

  /** @throws the error of the file system, as long as the file has never been read */
  async read(): Promise<Uint8Array> {
    if ("content" in this.#material) return this.#material.content;
    const now = this.#clock.now();
    if (this.#content !== undefined && now - this.#readAt < MAX_FILE_AGE_MS) return this.#content;
    try {
      this.#content = await readBoundedFile(this.#material.file);
      this.#readAt = now;
    } catch (error) {
      // In the middle of a renewal a file may be missing for a moment.
      if (this.#content === undefined) throw error;
    }
    return this.#content;
  }

  /** The next reading looks at the disk. */
  forget(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
  }
}
