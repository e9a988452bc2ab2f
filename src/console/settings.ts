/**
 * The settings that an operator can change while the server runs: the log level, and a tracing rule. A reload
 * restores the Corefile's.
 */
import { SETTABLE_LEVELS, type SettableLevel } from "../lib/logging/log.ts";
import { parseIpPrefix } from "../lib/net/prefix-set.ts";
import type { ServerControl } from "../plugin/contract/site.ts";
import { TRACING } from "../plugin/services/tracing-view.ts";
import type { SettingsView } from "./api-types.ts";
import { badRequest, optionalText, readObject } from "./http/body.ts";
import { RequestError } from "./http/request-error.ts";

const LONGEST_RULE = 24 * 60;
const MINUTE = 60_000;

export function settingsView(control: ServerControl): SettingsView {
  const tracers = tracersOf(control);
  const rule = tracers.find((each) => each.rule !== undefined)?.rule;
  return {
    level: control.log?.level ?? "info",
    levels: SETTABLE_LEVELS,
    tracers: tracers.length,
    traced: rule === undefined ? null : { client: rule.client, until: rule.until },
  };
}

/** @throws RequestError */
export function readLevel(body: string): SettableLevel {
  const { level } = readObject(body, ["level"]);
  const known = SETTABLE_LEVELS.find((each) => each === level);
  if (known === undefined) throw badRequest(`"level" is one of ${SETTABLE_LEVELS.join(", ")}`);
  return known;
}

export interface WantedRule {
  /** Empty to end the present rule. */
  readonly client: string;
  readonly minutes: number;
}

/** @throws RequestError */
export function readRule(body: string): WantedRule {
  const members = readObject(body, ["client", "minutes"]);
  const client = optionalText(members, "client")?.trim();
  if (client === undefined)
    throw badRequest('"client" is missing: an address or a prefix, or empty to end the rule');
  if (client !== "" && parseIpPrefix(client) === undefined)
    throw badRequest(`"client": ${client} is not an IP address or prefix`);
  const minutes = members.minutes ?? 10;
  if (typeof minutes !== "number" || !Number.isInteger(minutes) || minutes < 1 || minutes > LONGEST_RULE)
    throw badRequest(`"minutes" is a whole number from 1 to ${LONGEST_RULE}`);
  return { client, minutes };
}

/**
 * Resolves once all threads apply the rule.
 * @param time milliseconds of the Unix epoch
 * @throws RequestError
 */
export async function setRule(
  control: ServerControl,
  { client, minutes }: WantedRule,
  time: number,
): Promise<void> {
  const tracers = tracersOf(control);
  if (tracers.length === 0)
    throw new RequestError(409, "nothing is traced: write 'trace' into a server block of the Corefile");
  const rule = client === "" ? undefined : { client, until: time + minutes * MINUTE };
  await Promise.all(tracers.map((tracer) => tracer.setRule(rule)));
}

function tracersOf({ view }: ServerControl) {
  return TRACING.among(view?.blocks().flatMap((block) => block.plugins) ?? []);
}
