/** Options of directives that say where a cluster is: its API or files. */
import { dirname, resolve } from "node:path";
import type { DiagnosticSink, Span } from "../../corefile/diagnostic.ts";
import type { Directive } from "../../corefile/tree.ts";
import { INVALID, optional, required, rest, restTokens } from "../../plugin/config/arguments.ts";
import type { ConfigContext } from "../../plugin/config/context.ts";
import { type Option, option, optionList } from "../../plugin/config/options.ts";
import { text } from "../../plugin/config/values.ts";
import type { Site } from "../../plugin/contract/site.ts";
import { ClusterAccessError, readServer } from "./access/access.ts";

/** A path as it stands in the Corefile, and the folder of the file that it stands in. */
export interface ManifestPath {
  readonly path: string;
  readonly folder: string;
}

/** Paths of all lines, each with the folder that it is relative to. */
function manifestPaths(): Option<readonly ManifestPath[]> {
  const tokens = optionList({ paths: restTokens() });
  return {
    read(lines: readonly Directive[], context: ConfigContext) {
      const read = tokens.read(lines, context);
      if (read === INVALID) return INVALID;
      for (const [index, { paths }] of read.entries()) {
        const line = lines[index];
        if (paths.length > 0 || line === undefined) continue;
        const message = "Wrong argument count or unexpected line ending after 'manifests'";
        context.report.error("PLUGIN_ARGUMENT_MISSING", line.name.span, message, {
          expected: "PATH: a file or folder",
        });
        return INVALID;
      }
      return read.flatMap(({ paths }) =>
        paths.map((token) => ({ path: token.text, folder: dirname(token.span.file) })),
      );
    },
    usage: "PATH...",
  };
}

export const SOURCE_OPTIONS = {
  manifests: manifestPaths(),
  endpoint: option({ url: rest(text("the URL of an API server"), 1) }),
  tls: option({
    cert: required(text("a file")),
    key: required(text("a file")),
    cacert: required(text("a file")),
  }),
  kubeconfig: option({ file: required(text("a file")), context: optional(text("a context")) }),
};

const API_OPTIONS = ["endpoint", "tls", "kubeconfig", "snapshot"] as const;

interface SourceOptions {
  readonly manifests: readonly ManifestPath[];
  readonly endpoint: { readonly url: readonly string[] } | undefined;
  readonly tls: unknown;
  readonly kubeconfig: unknown;
  readonly snapshot?: unknown;
  readonly kube_dns?: boolean;
}

/** Of manifests, kubeconfig, endpoint and the cluster around this pod, the first that is there counts. */
export function checkSource(
  values: SourceOptions,
  report: DiagnosticSink,
  at: (option?: string) => Span,
): void {
  for (const url of values.endpoint?.url ?? []) {
    try {
      readServer(url, "endpoint");
    } catch (error) {
      if (!(error instanceof ClusterAccessError)) throw error;
      report.error("KUBERNETES_BAD_ENDPOINT", at("endpoint"), error.reason);
    }
  }
  const winner =
    values.manifests.length > 0 ? "manifests" : values.kubeconfig === undefined ? undefined : "kubeconfig";
  for (const name of API_OPTIONS) {
    if (values[name] === undefined || winner === undefined || name === winner) continue;
    if (name === "snapshot" && winner !== "manifests") continue;
    if (name === "endpoint" && winner === "kubeconfig" && values.kube_dns === true) continue;
    report.warning("KUBERNETES_API_UNUSED", at(name), `'${name}' has no effect beside '${winner}'`);
  }
  if (winner === undefined && values.tls !== undefined && values.endpoint === undefined) {
    report.warning("KUBERNETES_API_UNUSED", at("tls"), "'tls' has no effect without 'endpoint'");
  }
}

/** Relative to the directory of `root`; without one, to the file that names it, wherever the server was started. */
export function resolveManifestPath(
  { path, folder }: ManifestPath,
  site: Pick<Site, "block" | "resolvePath">,
): string {
  return site.block.settings.root === "" ? resolve(folder, path) : resolve(site.resolvePath(path));
}
