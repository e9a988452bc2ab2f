/** The folder in which OCI keeps images and other artefacts: blobs by their hash, and an index (OCI image layout 1.0). */
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sha256 } from "./archives.ts";

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly architecture: string; readonly os: string };
  readonly annotations?: Readonly<Record<string, string>>;
  readonly artifactType?: string;
}

export const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
export const INDEX = "application/vnd.oci.image.index.v1+json";

export class OciLayout {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(join(folder, "blobs", "sha256"), { recursive: true });
    writeFileSync(join(folder, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  }

  addBlob(mediaType: string, octets: Uint8Array): Descriptor {
    const hash = sha256(octets);
    writeFileSync(this.#blob(hash), octets);
    return { mediaType, digest: `sha256:${hash}`, size: octets.length };
  }

  addJson(mediaType: string, value: unknown): Descriptor {
    return this.addBlob(mediaType, Buffer.from(JSON.stringify(value)));
  }

  /** Takes over a blob from another layout. */
  take({ digest }: Descriptor, from: OciLayout): void {
    const hash = digest.replace("sha256:", "");
    if (!existsSync(this.#blob(hash))) copyFileSync(from.#blob(hash), this.#blob(hash));
  }

  /** Writes the index of what the layout is for. */
  finish(manifests: readonly Descriptor[]): void {
    writeFileSync(
      join(this.folder, "index.json"),
      JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests }),
    );
  }

  /**
   * Adds what `docker load` looked for before it knew the index.
   * @param tag such as "portolan:0.1.0"
   */
  addDockerManifest(tag: string, config: Descriptor, layers: readonly Descriptor[]): void {
    const path = ({ digest }: Descriptor): string => `blobs/${digest.replace(":", "/")}`;
    const manifest = [{ Config: path(config), RepoTags: [tag], Layers: layers.map(path) }];
    writeFileSync(join(this.folder, "manifest.json"), JSON.stringify(manifest));
  }

  #blob(hash: string): string {
    return join(this.folder, "blobs", "sha256", hash);
  }
}
