/** Where nodes are, for names that hold it. */
import { listMember, member, textEntries, textMember } from "../../objects/json.ts";
import type { ApiClient } from "./api-client.ts";
import { readWhole } from "./frames.ts";

/** Labels that say where a node is, those of old clusters last. */
const PLACE_LABELS = [
  ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"],
  ["failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"],
] as const;
const MAX_NODES = 64 * 1024 * 1024;

/** Topology zone and region. */
export interface NodePlace {
  readonly zone: string;
  readonly region: string;
}

/**
 * Where a node is, by its name; without a name, or where it does not say, where the first node is that says both.
 * @throws the error of the API
 */
export async function findNodePlace(
  client: Pick<ApiClient, "get">,
  signal: AbortSignal,
  name = "",
): Promise<NodePlace | undefined> {
  if (name !== "") {
    const { body } = await client.get(
      `/api/v1/nodes/${encodeURIComponent(name)}`,
      "application/json",
      signal,
    );
    const place = placeOf(JSON.parse(Buffer.from(await readWhole(body, MAX_NODES)).toString()));
    if (place !== undefined) return place;
  }
  let continueToken = "";
  do {
    const parameters = new URLSearchParams({
      limit: "100",
      ...(continueToken && { continue: continueToken }),
    });
    const { body } = await client.get(`/api/v1/nodes?${parameters}`, "application/json", signal);
    const list: unknown = JSON.parse(Buffer.from(await readWhole(body, MAX_NODES)).toString());
    for (const node of listMember(list, "items")) {
      const place = placeOf(node);
      if (place !== undefined) return place;
    }
    continueToken = textMember(member(list, "metadata"), "continue");
  } while (continueToken !== "");
  return undefined;
}

function placeOf(node: unknown): NodePlace | undefined {
  const labels = new Map(textEntries(member(node, "metadata"), "labels"));
  for (const [zoneLabel, regionLabel] of PLACE_LABELS) {
    const zone = labels.get(zoneLabel);
    const region = labels.get(regionLabel);
    if (zone !== undefined && region !== undefined) return { zone, region };
  }
  return undefined;
}
