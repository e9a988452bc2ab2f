/** A journal that has a whole zone, and not only the changes by updates. */
import type { Name } from "../../dns/name.ts";
import { Zone } from "../data/zone.ts";
import { copyOfZone } from "../data/zone-transfer.ts";
import { EditedZone, type ZoneStep } from "./edited-zone.ts";

/** Steps between two pauses. */
const PORTION = 200;

/** The steps that make a zone from nothing. */
export function allOf(zone: Zone): ZoneStep[] {
  const copy = copyOfZone(zone);
  const steps: ZoneStep[] = [{ sign: "+", record: copy.soa }];
  for (const record of copy.records()) steps.push({ sign: "+", record });
  return steps;
}

/**
 * The zone that results from steps.
 * @param seed zone that the steps are applied to, which is consumed; without it they start with nothing
 * @param pause called between portions
 */
export async function zoneOfSteps(
  seed: Zone | undefined,
  apex: Name,
  steps: readonly ZoneStep[],
  pause: () => Promise<void>,
): Promise<Zone> {
  const edited = new EditedZone(seed ?? new Zone(apex));
  for (const [index, step] of steps.entries()) {
    if (index % PORTION === PORTION - 1) await pause();
    edited.repeat(step);
  }
  await edited.zone.order(pause);
  return edited.zone;
}
