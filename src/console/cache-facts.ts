/** Shows and removes entries of the caches of all server blocks. */
import { Name, NameError } from "../dns/name.ts";
import { rcodeName } from "../dns/numbers.ts";
import { parseRecordType, recordTypeName } from "../dns/type-names.ts";
import type { ServerControl } from "../plugin/contract/site.ts";
import { CACHE, type CachedAnswer, type CacheView } from "../plugin/services/cache-view.ts";
import type { CacheAnswer, CachedRow } from "./api-types.ts";
import { badRequest, optionalText, readObject } from "./http/body.ts";

const MOST_ANSWERS = 200;

/** @throws RequestError */
export function cacheAnswer(control: ServerControl, name: string): CacheAnswer {
  const caches = cachesOf(control);
  const wanted = name === "" ? undefined : readName(name);
  const answers = wanted === undefined ? [] : caches.flatMap((cache) => cache.look(wanted, MOST_ANSWERS));
  return {
    caches: caches.map(({ zones, entries, octets, maxOctets }) => ({ zones, entries, octets, maxOctets })),
    answers: answers.slice(0, MOST_ANSWERS).map(cachedRow),
    more: answers.length >= MOST_ANSWERS,
    ...(wanted === undefined && { overview: overviewOf(caches) }),
  };
}

function cachedRow(answer: CachedAnswer): CachedRow {
  return {
    name: answer.name.toString(),
    type: recordTypeName(answer.type),
    rcode: rcodeName(answer.rcode),
    ttl: answer.ttl,
    remaining: answer.remaining,
    age: answer.age,
    answers: answer.answers,
    denial: answer.denial,
  };
}

/** Answers of each cache for the overview: few enough for one turn of the event loop. */
const MOST_LOOKED = 1_000;
const MOST_NEWEST = 20;
const MOST_ZONES = 10;
/** Last labels of names that the overview groups by. */
const ZONE_LABELS = 2;

function overviewOf(caches: readonly CacheView[]): NonNullable<CacheAnswer["overview"]> {
  const answers = caches.flatMap((cache) => cache.look(Name.root, MOST_LOOKED));
  const zones = new Map<string, number>();
  for (const { name } of answers) {
    const zone = name
      .suffix(name.labelCount - ZONE_LABELS)
      .toString()
      .toLowerCase();
    zones.set(zone, (zones.get(zone) ?? 0) + 1);
  }
  return {
    looked: answers.length,
    newest: answers
      .toSorted((one, other) => one.age - other.age)
      .slice(0, MOST_NEWEST)
      .map(cachedRow),
    zones: Array.from(zones, ([zone, count]) => ({ zone, answers: count }))
      .sort((one, other) => other.answers - one.answers)
      .slice(0, MOST_ZONES),
  };
}

export interface Forgetting {
  readonly name: Name;
  readonly below: boolean;
  /** `undefined` for all types. */
  readonly type: number | undefined;
  readonly typeName: string;
}

/** @throws RequestError */
export function readForget(body: string): Forgetting {
  const members = readObject(body, ["name", "below", "type"]);
  const name = optionalText(members, "name");
  if (name === undefined) throw badRequest('"name" is missing');
  const below = members.below ?? false;
  if (typeof below !== "boolean") throw badRequest('"below" is true or false');
  const typeName = (optionalText(members, "type") ?? "").toUpperCase();
  const type = typeName === "" ? undefined : parseRecordType(typeName);
  if (typeName !== "" && type === undefined) throw badRequest(`"type": ${typeName} is not a record type`);
  return { name: readName(name), below, type, typeName };
}

/** @returns the number of removed answers */
export async function forgetIn(control: ServerControl, { name, below, type }: Forgetting): Promise<number> {
  const forgotten = await Promise.all(cachesOf(control).map((cache) => cache.forget(name, below, type)));
  return forgotten.reduce((sum, count) => sum + count, 0);
}

function cachesOf({ view }: ServerControl): CacheView[] {
  return CACHE.among(view?.blocks().flatMap((block) => block.plugins) ?? []);
}

function readName(text: string): Name {
  try {
    return Name.parse(text.endsWith(".") ? text : `${text}.`);
  } catch (error) {
    if (error instanceof NameError) throw badRequest(`${text} is not a domain name: ${error.reason}`);
    throw error;
  }
}
