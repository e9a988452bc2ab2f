/** The discovery documents of the API, limited to kubectl's needs. */
import { apiVersionOf, type ResourceType } from "./resource-types.ts";

const VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"];

/** The document at a path, or nothing. */
export function discoveryDocument(
  path: string,
  types: readonly ResourceType[],
  address: string,
): Record<string, unknown> | undefined {
  switch (path) {
    case "/version":
      return { major: "1", minor: "32", gitVersion: "v1.32.0", platform: "linux/amd64" };
    case "/api":
      return {
        kind: "APIVersions",
        versions: ["v1"],
        serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: address }],
      };
    case "/apis":
      return { kind: "APIGroupList", apiVersion: "v1", groups: groupsOf(types) };
  }
  const groupVersion = /^\/api\/(v1)$/.exec(path)?.[1] ?? /^\/apis\/([^/]+\/[^/]+)$/.exec(path)?.[1];
  if (groupVersion === undefined) return undefined;
  const served = types.filter((type) => apiVersionOf(type) === groupVersion);
  if (served.length === 0) return undefined;
  return {
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion,
    resources: served.map(({ plural, kind, isNamespaced, shortNames }) => ({
      name: plural,
      singularName: kind.toLowerCase(),
      namespaced: isNamespaced,
      kind,
      verbs: VERBS,
      shortNames,
    })),
  };
}

function groupsOf(types: readonly ResourceType[]): Record<string, unknown>[] {
  const groups = new Set(types.map(({ group }) => group).filter((group) => group !== ""));
  return [...groups].map((name) => {
    const versions = [...new Set(types.filter(({ group }) => group === name).map(({ version }) => version))];
    const described = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }));
    return { name, versions: described, preferredVersion: described[0] };
  });
}
