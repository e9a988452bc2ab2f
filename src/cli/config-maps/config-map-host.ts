/** A view of the file system with ConfigMaps mounted as in a pod. */
import { basename, dirname, normalize } from "node:path";
import type { CorefileHost, FileContent } from "../../corefile/host.ts";
import type { ImportableKey } from "./config-maps.ts";

export interface MountedKeys {
  /** In the folder of the Corefile. */
  readonly siblings: readonly ImportableKey[];
  /** In each folder `custom`: k3s and AKS both mount `/etc/coredns/custom`, but spell the import differently. */
  readonly custom: readonly ImportableKey[];
}

/** The folder of the Corefile in a pod. Imports may use this path. */
const POD_FOLDER = "/etc/coredns";

/**
 * @param corefile path of the Corefile, whose folder stands for the pod's
 * @param imports called for each key of `custom` that is imported
 */
export function withConfigMaps(
  host: CorefileHost,
  corefile: string,
  { siblings, custom }: MountedKeys,
  imports: (key: ImportableKey) => void = () => undefined,
): CorefileHost {
  const folder = normalize(dirname(corefile));
  const isCorefileFolder = (path: string): boolean => path === folder || path === POD_FOLDER;
  const mountedAt = (path: string): readonly ImportableKey[] => {
    if (custom.length > 0 && basename(path) === "custom") return custom;
    return isCorefileFolder(path) ? siblings : [];
  };
  return {
    ...host,
    readFile(given): FileContent {
      const byName = [...siblings, ...custom].find(({ name }) => name === given);
      const path = normalize(given);
      const key = byName ?? mountedAt(dirname(path)).find((each) => each.key === basename(path));
      if (key === undefined) return host.readFile(given);
      if (byName === undefined && custom.includes(key)) imports(key);
      return { kind: "text", text: key.text, name: key.name };
    },
    list(given) {
      const path = normalize(given);
      const keys = mountedAt(path).map(({ key }) => key);
      if (keys.length === 0) return host.list(given);
      return basename(path) === "custom" ? keys : [...new Set([...(host.list(given) ?? []), ...keys])];
    },
  };
}
