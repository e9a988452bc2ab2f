/** The Helm chart: an archive for `helm install`, and the same as an artefact of OCI, for registries. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { parse } from "yaml";
import { packTar } from "./archives.ts";
import { filesIn, Stage } from "./components.ts";
import type { Edition } from "./edition.ts";
import { MANIFEST, OciLayout } from "./oci-layout.ts";
import { cacheOf, emptyFolder } from "./program.ts";
import { ingredientsOf, writeSbom } from "./sbom.ts";

export interface ChartFiles {
  /** For `helm install`. */
  readonly path: string;
  /** The layout of OCI, as an archive. */
  readonly artefact: string;
  readonly sbom: string;
}

export async function makeChart(edition: Edition, out: string): Promise<ChartFiles> {
  const { root, manifest, version } = edition;
  const work = emptyFolder(join(cacheOf(edition), `chart-${process.pid}`));
  try {
    const stage = new Stage(join(work, "root"));
    const from = join(root, "deploy", "helm", "portolan");
    const purl = `pkg:npm/${manifest.name}@${manifest.version}#deploy/helm/portolan`;
    const component = {
      type: "data",
      name: "portolan-chart",
      version,
      purl,
      licence: manifest.license,
    } as const;
    const description = describeChart(readFileSync(join(from, "Chart.yaml"), "utf8"), version);
    stage.add(component, (files) => {
      files.copyFolder(from, "portolan", (path) => path !== "Chart.yaml");
      files.copy(join(root, "LICENSE"), "portolan/LICENSE");
      files.write("portolan/Chart.yaml", (file) => writeFileSync(file, description));
    });
    const tar = join(work, "chart.tar");
    await packTar(stage.folder, tar, edition.time, filesIn(stage.folder));
    const octets = gzipSync(readFileSync(tar), { level: 9 });
    const path = join(out, `portolan-chart-${version}.tgz`);
    writeFileSync(path, octets);

    const layout = new OciLayout(join(work, "layout"));
    const config = layout.addJson("application/vnd.cncf.helm.config.v1+json", parse(description));
    const layer = layout.addBlob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", octets);
    const described = layout.addJson(MANIFEST, {
      schemaVersion: 2,
      mediaType: MANIFEST,
      config,
      layers: [layer],
      annotations: {
        "org.opencontainers.image.created": new Date(edition.time * 1000).toISOString(),
        "org.opencontainers.image.description": manifest.description,
        "org.opencontainers.image.title": manifest.name,
        "org.opencontainers.image.version": version,
      },
    });
    layout.finish([{ ...described, annotations: { "org.opencontainers.image.ref.name": version } }]);
    const artefact = join(out, `portolan-chart-${version}.oci.tar`);
    await packTar(layout.folder, artefact, edition.time, ["blobs", "index.json", "oci-layout"]);
    return { path, artefact, sbom: writeSbom(edition, path, ingredientsOf(stage)) };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Chart.yaml with the version of this edition. */
function describeChart(text: string, version: string): string {
  return text.replace(/^(version|appVersion): .*$/gm, (_line, name: string) => `${name}: ${version}`);
}
