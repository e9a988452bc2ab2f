/** Why a question to an external zone has no answer, in words for the people who run it. */
import type { Name } from "../../dns/name.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import {
  BEGINNING_OF_ADDRESSES,
  NO_EXTERNAL_ADDRESS,
  NO_NAMESPACE,
  NO_READY_ENDPOINT,
  NO_SERVICE,
  NO_SUCH_ADDRESS,
  NO_SUCH_ENDPOINT,
  NO_SUCH_PORT,
  type Resolution,
} from "../answers/resolution.ts";
import type { ExternalView } from "./external-view.ts";
import type { ExternalZone } from "./external-zone.ts";

/** @returns one sentence without full stop */
export function whyNotExternal(
  view: ExternalView,
  zone: ExternalZone,
  name: Name,
  type: number,
  resolution: Resolution,
): string {
  const labels = name.labelsAbove(zone.name);
  const namespace = labels.at(-1) ?? "";
  const service = `service ${labels.at(-2) ?? ""} in namespace ${namespace}`;
  switch (resolution) {
    case NO_NAMESPACE:
      return `namespace ${namespace} does not exist in the cluster, or is not shown`;
    case NO_SERVICE:
      return `there is no ${service}`;
    case NO_EXTERNAL_ADDRESS:
      return `${service} has neither external IPs nor a load balancer with an address${view.headless ? "" : ", and headless services are not shown"}`;
    case NO_READY_ENDPOINT:
      return `${service} has no external address, and no endpoint that is ready`;
    case NO_SUCH_ENDPOINT:
      return `${service} has no external address, and no endpoint ${labels[0] ?? ""} that is ready`;
    case NO_SUCH_PORT:
      return `${service} has no port ${labels[0] ?? ""} with protocol ${labels[1] ?? ""}`;
    case BEGINNING_OF_ADDRESSES:
      return "external addresses have names below it, and it has no records of its own";
    case NO_SUCH_ADDRESS:
      return "no service has this external address";
  }
  return resolution.exists
    ? `the name exists, without records of type ${recordTypeName(type)}`
    : "no service has a name of this form";
}
