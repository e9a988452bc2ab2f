/** The Corefile in a ConfigMap, for the commands that run a configuration in this process. */
import type { CorefileHost } from "../corefile/host.ts";
import type { CorefileSource } from "../server/configuration/configuration.ts";
import { UnreadableCorefile } from "./corefile-source.ts";

export interface RunnableCorefile {
  readonly source: CorefileSource;
  /** With the other keys of the ConfigMaps as files. */
  readonly host: CorefileHost;
}

const KUBERNETES_OBJECT = /^[\s{]*["']?(apiVersion|kind|data|items)["']?\s*:/m;

/**
 * Reads a text as `check` does. A text without a ConfigMap is itself a Corefile. Keys of `coredns-custom` alone are imported
 * into the Corefile of AKS.
 * @throws UnreadableCorefile for Kubernetes objects without a Corefile, with several, or that are not valid YAML
 */
export async function runnableCorefile(
  source: CorefileSource,
  host: CorefileHost,
): Promise<RunnableCorefile> {
  if (!KUBERNETES_OBJECT.test(source.text)) return { source, host };
  const { NoCorefileInYaml, readConfigMaps } = await import("./config-maps/config-maps.ts");
  const { withConfigMaps } = await import("./config-maps/config-map-host.ts");
  try {
    const { corefiles, custom, missing } = readConfigMaps(source);
    if (missing !== undefined) throw missing;
    const [first, ...others] = corefiles;
    if (others.length > 0)
      throw new UnreadableCorefile(
        source.file,
        `it has ${corefiles.length} ConfigMaps with a Corefile, and only one can run`,
      );
    if (first !== undefined)
      return {
        source: first.source,
        host: withConfigMaps(host, first.source.file, { siblings: first.siblings, custom }),
      };
    if (custom.length === 0) return { source, host };
    const { AKS_COREFILE } = await import("./config-maps/aks-corefile.ts");
    return { source: AKS_COREFILE, host: withConfigMaps(host, AKS_COREFILE.file, { siblings: [], custom }) };
  } catch (error) {
    if (error instanceof NoCorefileInYaml) throw new UnreadableCorefile(source.file, error.message);
    throw error;
  }
}
