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

const NOTHING: ReadonlyMap<string, ImportableKey> = new Map();

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
  const byName = new Map([...siblings, ...custom].map((key) => [key.name, key] as const));
  // The first of several keys with one name counts, as in `distinct`.
  const inCustom = new Map(custom.toReversed().map((each) => [each.key, each] as const));
  const inFolder = new Map(siblings.toReversed().map((each) => [each.key, each] as const));
  const isCorefileFolder = (path: string): boolean => path === folder || path === POD_FOLDER;
  const mountedAt = (path: string): ReadonlyMap<string, ImportableKey> => {
    if (custom.length > 0 && basename(path) === "custom") return inCustom;
    return isCorefileFolder(path) ? inFolder : NOTHING;
  };
  return {
    ...host,
    readFile(given): FileContent {
      const named = byName.get(given);
      const path = normalize(given);
      const key = named ?? mountedAt(dirname(path)).get(basename(path));
      if (key === undefined) return host.readFile(given);
      if (named === undefined && inCustom.get(key.key) === key) imports(key);
      return { kind: "text", text: key.text, name: key.name };
    },
    list(given) {
      const path = normalize(given);
      const keys = [...mountedAt(path).keys()];
      if (keys.length === 0) return host.list(given);
      return basename(path) === "custom" ? keys : [...new Set([...(host.list(given) ?? []), ...keys])];
    },
  };
}
