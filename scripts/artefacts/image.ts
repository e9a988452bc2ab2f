/** The container image: from scratch, out of npm's Node, a few of Debian's libraries and the program. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compress, packTar, sha256 } from "./archives.ts";
import { type Component, Stage } from "./components.ts";
import { type DebianPackage, fetchDebianPackages } from "./debian-packages.ts";
import type { Edition } from "./edition.ts";
import { type Descriptor, INDEX, MANIFEST, OciLayout } from "./oci-layout.ts";
import type { Platform } from "./platforms.ts";
import { cacheOf, emptyFolder, provideProgram, stageNode, stageProgram } from "./program.ts";
import { type Ingredient, ingredientsOf, writeSbom } from "./sbom.ts";

/** What one image was made of. */
export interface Image {
  readonly platform: Platform;
  readonly manifest: Descriptor;
  readonly ingredients: readonly Ingredient[];
  /** Octets of all that is downloaded of it. */
  readonly size: number;
}

export interface ImageFiles {
  /** The layout of all platforms. */
  readonly folder: string;
  /** Archives: that of the layout first, then one for each platform. */
  readonly archives: readonly string[];
  readonly images: readonly Image[];
  /** What is in each image. */
  readonly sboms: readonly string[];
}

/** What Node, koffi and its addon are linked with, and what glibc loads for names of hosts. */
const GLIBC =
  /^(libc\.so\.6|libdl\.so\.2|libm\.so\.6|libpthread\.so\.0|libresolv\.so\.2|librt\.so\.1|ld-linux-[\w-]+\.so\.\d)$/;
const DEBIAN_PACKAGES = ["ca-certificates", "gcc-12-base", "libc6", "libgcc-s1", "libstdc++6"];
const NODE = "usr/local/bin/node";
const PROGRAM = "opt/portolan";

/**
 * Makes the images, and lays them into `out` as a folder and as archives.
 * @param out is made where it is not there
 */
export async function makeImages(
  edition: Edition,
  platforms: readonly Platform[],
  out: string,
): Promise<ImageFiles> {
  await provideProgram(edition);
  const base = join(out, `portolan-${edition.version}-image`);
  const layout = new OciLayout(emptyFolder(base));
  const images: Image[] = [];
  const archives: string[] = [];
  const sboms: string[] = [];
  for (const platform of platforms) {
    const single = new OciLayout(
      emptyFolder(join(cacheOf(edition), `layout-${platform.architecture}-${process.pid}`)),
    );
    const { image, blobs, config, layers } = await makeImage(edition, platform, single);
    images.push(image);
    single.finish([{ ...image.manifest, annotations: namesOf(edition) }]);
    single.addDockerManifest(`portolan:${edition.version}`, config, layers);
    for (const blob of [...blobs, image.manifest]) layout.take(blob, single);
    const archive = `${base}-${platform.architecture}.tar`;
    await packTar(single.folder, archive, edition.time, readdirSync(single.folder).sort());
    archives.push(archive);
    sboms.push(writeSbom(edition, archive, image.ingredients));
    rmSync(single.folder, { recursive: true });
  }
  const index = layout.addJson(INDEX, {
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: images.map(({ manifest }) => manifest),
    annotations: labelsOf(edition),
  });
  layout.finish([{ ...index, annotations: namesOf(edition) }]);
  await packTar(layout.folder, `${base}.tar`, edition.time, readdirSync(layout.folder).sort());
  return { folder: base, archives: [`${base}.tar`, ...archives], images, sboms };
}

interface MadeImage {
  readonly image: Image;
  readonly blobs: readonly Descriptor[];
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
}

async function makeImage(edition: Edition, platform: Platform, layout: OciLayout): Promise<MadeImage> {
  const work = emptyFolder(join(cacheOf(edition), `image-${platform.architecture}-${process.pid}`));
  try {
    // What seldom changes is a layer of its own: nodes have it from the version before.
    const base = new Stage(join(work, "base"));
    await stageNode(base, edition, platform, { at: NODE, licence: "usr/share/doc/node/LICENSE" });
    await stageSystem(base, edition, platform);
    const program = new Stage(join(work, "program"));
    await stageProgram(program, edition, platform, { at: PROGRAM, interpreter: `/${NODE}` });
    program.add(describeLink(edition), (files) =>
      files.link(`/${PROGRAM}/bin/portolan`, "usr/local/bin/portolan"),
    );
    const layers: Layer[] = [];
    for (const [stage, what] of [
      [base, "Node and libraries"],
      [program, `Portolan ${edition.version}`],
    ] as const)
      layers.push(await addLayer(layout, stage.folder, what, edition));
    const blobs = layers.map(({ blob }) => blob);
    const config = layout.addJson(
      "application/vnd.oci.image.config.v1+json",
      configOf(edition, platform, layers),
    );
    const manifest = layout.addJson(MANIFEST, {
      schemaVersion: 2,
      mediaType: MANIFEST,
      config,
      layers: blobs,
      annotations: labelsOf(edition),
    });
    const image: Image = {
      platform,
      manifest: { ...manifest, platform: { architecture: platform.architecture, os: "linux" } },
      ingredients: ingredientsOf(base, program),
      size: [...blobs, config, manifest].reduce((sum, { size }) => sum + size, 0),
    };
    return { image, blobs: [...blobs, config], config, layers: blobs };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function describeLink({ manifest, version }: Edition): Omit<Component, "files"> {
  const { name, license } = manifest;
  return {
    type: "application",
    name: `${name}-command`,
    version,
    purl: `pkg:npm/${name}@${version}`,
    licence: license,
  };
}

interface Layer {
  readonly blob: Descriptor;
  /** The hash of the layer before it is compressed. */
  readonly diffId: string;
  readonly what: string;
}

async function addLayer(layout: OciLayout, folder: string, what: string, edition: Edition): Promise<Layer> {
  const archive = `${folder}.tar`;
  await packTar(folder, archive, edition.time);
  const octets = readFileSync(archive);
  const hash = sha256(octets);
  const mediaType = "application/vnd.oci.image.layer.v1.tar+zstd";
  const diffId = `sha256:${hash}`;
  return { blob: layout.addBlob(mediaType, compressOnce(octets, hash, cacheOf(edition))), diffId, what };
}

/** Compresses what was not compressed before: for Node that takes longer than all else. */
function compressOnce(octets: Uint8Array, hash: string, cache: string): Buffer {
  const file = join(cache, `layer-${hash.slice(0, 24)}.zst`);
  if (existsSync(file)) return readFileSync(file);
  const compressed = compress(octets);
  writeFileSync(file, compressed);
  return compressed;
}

/** The libraries, the certificates of authorities, and the files in which programs look up users. */
async function stageSystem(stage: Stage, edition: Edition, platform: Platform): Promise<void> {
  const { architecture, libraries } = platform;
  const packages = await fetchDebianPackages(cacheOf(edition), architecture, DEBIAN_PACKAGES);
  for (const found of packages)
    stage.add(describeDebian(found), (files) => {
      const copyright = `usr/share/doc/${found.name}/copyright`;
      if (existsSync(join(found.folder, copyright))) files.copy(join(found.folder, copyright), copyright);
      for (const folder of [`lib/${libraries}`, `usr/lib/${libraries}`]) {
        if (!existsSync(join(found.folder, folder))) continue;
        for (const name of readdirSync(join(found.folder, folder)))
          if (GLIBC.test(name) || /^(libgcc_s\.so\.1|libstdc\+\+\.so\.6)$/.test(name))
            files.copy(join(found.folder, folder, name), `usr/lib/${libraries}/${name}`);
      }
      if (found.name === "libc6") {
        const name = platform.loader.replace(/^.*\//, "");
        files.link(`/usr/lib/${libraries}/${name}`, platform.loader);
      }
      if (found.name === "ca-certificates")
        files.write("etc/ssl/certs/ca-certificates.crt", (file) => writeFileSync(file, authorities(found)));
    });
  const { name, license } = edition.manifest;
  stage.add(
    {
      type: "data",
      name: `${name}-system`,
      version: edition.manifest.version,
      purl: `pkg:generic/${name}-system@${edition.manifest.version}`,
      licence: license,
    },
    (files) => {
      for (const [path, text] of Object.entries(SYSTEM_FILES))
        files.write(path, (file) => writeFileSync(file, text));
    },
  );
  mkdirSync(join(stage.folder, "tmp"));
}

const SYSTEM_FILES = {
  "etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
  "etc/group": "root:x:0:\nnonroot:x:65532:\n",
  "etc/nsswitch.conf": "hosts: files dns\n",
};

function describeDebian({ name, version, architecture }: DebianPackage): Omit<Component, "files"> {
  return {
    type: "library",
    name,
    version,
    purl: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`,
    licence: `see usr/share/doc/${name}/copyright`,
  };
}

/** All certificates of authorities in one text, as `update-ca-certificates` makes it. */
function authorities({ folder }: DebianPackage): string {
  const path = join(folder, "usr", "share", "ca-certificates", "mozilla");
  return readdirSync(path)
    .sort()
    .map((name) => `${readFileSync(join(path, name), "latin1").trimEnd()}\n`)
    .join("");
}

function configOf(edition: Edition, { architecture }: Platform, layers: readonly Layer[]): unknown {
  const created = new Date(edition.time * 1000).toISOString();
  return {
    created,
    architecture,
    os: "linux",
    config: {
      // A number, so that Kubernetes can tell that it is not root. Port 53 is opened to this user by the pod: no file in the image has capabilities.
      User: "65532:65532",
      ExposedPorts: { "53/tcp": {}, "53/udp": {}, "9153/tcp": {} },
      Env: [
        "PATH=/usr/local/bin",
        "NODE_ENV=production",
        // What the program lets a half of V8's young generation grow to anyway; named here, the launcher need not start Node anew for it.
        "NODE_OPTIONS=--max-semi-space-size=2",
      ],
      // As in CoreDNS's image the arguments are those of the program, and a Corefile in the working directory is found.
      Entrypoint: [`/${NODE}`, `/${PROGRAM}/bin/portolan`],
      WorkingDir: "/",
      Labels: labelsOf(edition),
    },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ what }) => ({ created, created_by: what })),
  };
}

function labelsOf({ manifest, version, commit, source, time }: Edition): Record<string, string> {
  const prefix = "org.opencontainers.image.";
  return {
    [`${prefix}created`]: new Date(time * 1000).toISOString(),
    [`${prefix}description`]: manifest.description,
    [`${prefix}licenses`]: manifest.license,
    [`${prefix}revision`]: commit,
    [`${prefix}source`]: source,
    [`${prefix}title`]: manifest.name,
    [`${prefix}version`]: version,
  };
}

/** What tools call the image that they import. */
function namesOf({ version }: Edition): Record<string, string> {
  return {
    "org.opencontainers.image.ref.name": version,
    "io.containerd.image.name": `docker.io/library/portolan:${version}`,
  };
}
