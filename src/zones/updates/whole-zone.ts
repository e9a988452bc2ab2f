/** A journal that has a whole zone, and not only what updates changed in one. */
import type { Name } from "../../dns/name.ts";
import { Zone } from "../data/zone.ts";
import { copyOfZone } from "../data/zone-transfer.ts";
import { EditedZone, type ZoneStep } from "./edited-zone.ts";

/** Steps of a portion: some tenths of a millisecond. */
const PORTION = 200;

/** The steps that make a zone out of nothing. */
export function allOf(zone: Zone): ZoneStep[] {
  const copy = copyOfZone(zone);
  const steps: ZoneStep[] = [{ sign: "+", record: copy.soa }];
  for (const record of copy.records()) steps.push({ sign: "+", record });
  return steps;
}

/**
 * The zone that steps lead to.
 * @param seed what the steps are done to, which becomes part of the zone; without it they begin with nothing
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
