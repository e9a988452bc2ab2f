import type { Name } from "../../dns/index.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import { ignored } from "../../plugin/config/options.ts";
import {
  type ConfigSchema,
  directive,
  domainName,
  Fallthrough,
  fallthrough,
  flag,
  merged,
  option,
  required,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";
import { type AllowRule, allowRules, permissionOf, permissionsOf } from "../../zones/updates/allow-rules.ts";
import type { UpdatePermission } from "../../zones/updates/update-policy.ts";

export interface FileConfig {
  readonly dbfile: string;
  readonly zones: ZoneList;
  /** Milliseconds, 0 for never. */
  readonly reload: number | undefined;
  readonly reload_by_mtime: boolean;
  readonly fallthrough: Fallthrough;
  /** Keys that may update the zone. */
  readonly update: { readonly key: readonly Name[] } | undefined;
  /** Permissions of keys that may not change everything. */
  readonly allow: readonly AllowRule[];
  readonly journal: string | undefined;
}

/** Milliseconds between two checks of a file. */
export const DEFAULT_RELOAD = 60_000;

const reloadInterval: Value<number> = {
  expected: "a duration such as 30s, or 0 for never",
  parse(word) {
    const milliseconds = word === "0" ? 0 : parseGoDuration(word);
    if (milliseconds === undefined) return new ValueProblem(`time: invalid duration "${word}"`);
    if (milliseconds < 0) return new ValueProblem(`invalid negative duration for reload '${word}'`);
    return milliseconds;
  },
};

export const fileConfig: ConfigSchema<readonly FileConfig[]> = merged(
  directive({
    args: { dbfile: required(text("a path")), zones: zones() },
    options: {
      reload: single(reloadInterval, undefined, { overlook: true }),
      reload_by_mtime: flag(),
      fallthrough: fallthrough(),
      allow: allowRules(),
      update: option({ key: rest(domainName(), 1) }),
      journal: single(text("a path")),
      upstream: ignored("names that a zone points to are always looked up through this server"),
    },
    occurrences: "each",
    check(config, report, at) {
      const takesUpdates = config.update !== undefined || config.allow.length > 0;
      const [zone, ...others] = config.zones.zones;
      if (zone !== undefined && others.length === 0) {
        for (const rule of config.allow) {
          const permission = permissionOf(rule, zone);
          if (typeof permission === "string") report.error("ALLOW_RULE_OUTSIDE", rule.span, permission);
        }
      }
      if (takesUpdates && config.zones.zones.length !== 1)
        report.error(
          "FILE_UPDATE_ZONES",
          at(config.update === undefined ? "allow" : "update"),
          "a file that accepts updates can serve only one zone",
          {
            expected: "one zone after the file",
          },
        );
      if (!takesUpdates && config.journal !== undefined)
        report.error(
          "FILE_JOURNAL_UNUSED",
          at("journal"),
          "'journal' is only for zones that accept updates",
          {
            expected: "'update' or 'allow' with the keys that can change the zone",
          },
        );
    },
  }),
);

/** The lines of a block combined: some settings apply to all. */
export interface FileSettings {
  readonly zones: readonly {
    readonly file: string;
    readonly zones: ZoneList;
    readonly reload: number;
    readonly byMtime: boolean;
    /** Empty for a zone that accepts no updates. */
    readonly permissions: readonly UpdatePermission[];
    readonly journal: string;
  }[];
  readonly fallthrough: Fallthrough;
}

export function joinLines(lines: readonly FileConfig[]): FileSettings {
  let reload = DEFAULT_RELOAD;
  let byMtime = false;
  let through = Fallthrough.none;
  const joined = lines.map((line) => {
    reload = line.reload ?? reload;
    byMtime ||= line.reload_by_mtime;
    if (line.fallthrough !== Fallthrough.none) through = line.fallthrough;
    return {
      file: line.dbfile,
      zones: line.zones,
      reload,
      byMtime,
      permissions: permissionsIn(line),
      journal: line.journal ?? `${line.dbfile}.journal`,
    };
  });
  return { zones: joined, fallthrough: through };
}

function permissionsIn({ update, allow, zones }: FileConfig): UpdatePermission[] {
  const [zone] = zones.zones;
  const all = (update?.key ?? []).map((key) => ({ key, name: undefined, types: undefined }));
  return zone === undefined ? all : [...all, ...permissionsOf(allow, zone)];
}
