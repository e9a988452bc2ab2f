/** The DNS settings of pods, from manifests or from objects of the API. */

import { machineFileSystem } from "../../kubernetes/manifests/file-system.ts";
import { findFiles } from "../../kubernetes/manifests/find-files.ts";
import { MAX_FILE_SIZE } from "../../kubernetes/manifests/manifest-source.ts";
import { parseDocuments } from "../../kubernetes/manifests/parse-documents.ts";
import { listMember, member, textMember } from "../../kubernetes/objects/json.ts";
import { podAddresses } from "../../kubernetes/objects/reduce.ts";
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import type { PodDns } from "./pod-resolver.ts";

export interface ResolvingPod extends PodDns {
  readonly name: string;
  /** As text; empty for a pod that has none yet. */
  readonly addresses: readonly string[];
}

/** Every pod of the files below the paths. Unreadable files are skipped; the server reports them. */
export async function readManifestPods(paths: readonly string[]): Promise<ResolvingPod[]> {
  const { files } = await findFiles(paths, machineFileSystem);
  const pods: ResolvingPod[] = [];
  for (const { path, state } of files) {
    if (state.size > MAX_FILE_SIZE) continue;
    const octets = await machineFileSystem.read(path).catch(() => undefined);
    if (octets === undefined) continue;
    for (const document of parseDocuments(new TextDecoder().decode(octets)))
      if ("value" in document) collectPods(document.value, textMember(document.value, "kind"), pods);
  }
  return pods;
}

function collectPods(value: unknown, kind: string, pods: ResolvingPod[]): void {
  if (kind === "List" || kind === "PodList") {
    for (const item of listMember(value, "items"))
      collectPods(item, textMember(item, "kind") || kind.slice(0, -"List".length), pods);
  } else if (kind === "Pod") pods.push(podOf(value));
}

/** @param value the object as in JSON */
export function podOf(value: unknown): ResolvingPod {
  const metadata = member(value, "metadata");
  const spec = member(value, "spec");
  const config = member(spec, "dnsConfig");
  const ndots = listMember(config, "options").find((option) => textMember(option, "name") === "ndots");
  const number = Number(textMember(ndots, "value"));
  return {
    name: textMember(metadata, "name"),
    namespace: textMember(metadata, "namespace") || "default",
    policy: textMember(spec, "dnsPolicy") || "ClusterFirst",
    hostNetwork: member(spec, "hostNetwork") === true,
    config: {
      nameservers: texts(config, "nameservers"),
      searches: texts(config, "searches"),
      ndots:
        ndots !== undefined && Number.isInteger(number) && number >= 0
          ? Math.min(number, MAX_NDOTS)
          : undefined,
    },
    addresses: podAddresses(value).map((octets) => formatIpAddress(octets)),
  };
}

/** resolv.conf(5) limits it to this. */
const MAX_NDOTS = 15;

function texts(value: unknown, key: string): string[] {
  return listMember(value, key).filter((text) => typeof text === "string");
}
