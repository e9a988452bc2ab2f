/** The folders of a pod that ConfigMaps are mounted in, on top of this machine's files. */
import { basename, dirname, normalize } from "node:path";
import type { CorefileHost, FileContent } from "../../corefile/host.ts";
import type { ImportableKey } from "./config-maps.ts";

export interface MountedKeys {
  /** In the folder of the Corefile. */
  readonly siblings: readonly ImportableKey[];
  /** In each folder `custom`: `/etc/coredns/custom` for k3s and AKS, who write it in different ways. */
  readonly custom: readonly ImportableKey[];
}

/** Where a pod has its Corefile; what that imports may be named so. */
const POD_FOLDER = "/etc/coredns";

/**
 * @param corefile path of the Corefile, whose folder stands for that of the pod
 * @param imports told of each key of `custom` that is imported
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
