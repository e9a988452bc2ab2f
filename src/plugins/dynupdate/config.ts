import { normalize } from "node:path";
import type { DiagnosticSink } from "../../corefile/diagnostic.ts";
import type { Directive } from "../../corefile/tree.ts";
import type { Name } from "../../dns/index.ts";
import { type Argument, INVALID } from "../../plugin/config/arguments.ts";
import type { Option } from "../../plugin/config/options.ts";
import { parseZones } from "../../plugin/config/values.ts";
import {
  type ConfigSchema,
  directive,
  integer,
  merged,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { type AllowRule, allowRules, permissionOf } from "../../zones/updates/allow-rules.ts";

export interface DynUpdateConfig {
  readonly zone: Name;
  readonly file: string | undefined;
  readonly database: string | undefined;
  readonly allow: readonly AllowRule[];
  readonly max_records: number;
  readonly max_bytes: number;
  readonly max_update_records: number;
}

/** The zone of the line, or else the only zone of the block's keys. */
const zone: Argument<Name> = {
  read(cursor) {
    const { context, owner } = cursor;
    const refuse = (message: string): typeof INVALID => {
      context.report.error("DYNUPDATE_ZONE", owner.span, message, { expected: "dynupdate ZONE" });
      return INVALID;
    };
    const token = cursor.take();
    if (cursor.take() !== undefined) return refuse("exactly one zone is allowed");
    if (token === undefined) {
      const [only] = context.zones;
      return only === undefined || context.zones.length > 1
        ? refuse("zone is required when the server block does not define exactly one zone")
        : only;
    }
    const parsed = parseZones(token.text);
    if (parsed instanceof ValueProblem || parsed.length !== 1) return refuse(`invalid zone "${token.text}"`);
    return parsed[0] ?? refuse(`invalid zone "${token.text}"`);
  },
  usage: (label) => `[${label}]`,
};

/** Rejects a repeated option. */
function once<T>(inner: Option<T>): Option<T> {
  return {
    read(lines, context) {
      const second = lines[1];
      if (second === undefined) return inner.read(lines, context);
      context.report.error(
        "DYNUPDATE_REPEATED",
        second.name.span,
        `${second.name.text} specified more than once`,
      );
      return INVALID;
    },
    usage: inner.usage,
  };
}

function limit(name: string, fallback: number): Option<number> {
  return once(single(integer({ min: 1, problem: () => `${name} requires a positive integer` }), fallback));
}

const databasePath: Value<string> = {
  expected: "a path",
  parse: (word) =>
    word === ""
      ? new ValueProblem("Wrong argument count or unexpected line ending after '': an empty path")
      : word,
};

const eachLine: ConfigSchema<DynUpdateConfig> = directive({
  args: { zone },
  options: {
    file: once(single(text("a path"))),
    database: once(single(databasePath)),
    allow: allowRules(),
    max_records: limit("max_records", 10_000),
    max_bytes: limit("max_bytes", 8_388_608),
    max_update_records: limit("max_update_records", 1_024),
  },
  occurrences: "each",
  check(config, report, at) {
    const { file, database } = config;
    if (file !== undefined && database !== undefined && normalize(file) === normalize(database))
      report.error("DYNUPDATE_DATABASE_SEED", at("database"), "database and seed must be different files");
    for (const rule of config.allow) {
      const permission = permissionOf(rule, config.zone);
      if (typeof permission === "string") report.error("ALLOW_RULE_OUTSIDE", rule.span, permission);
    }
  },
});

/** At the closing brace, where CoreDNS finds it out. */
function reportMissing(line: DynUpdateConfig, occurrence: Directive, report: DiagnosticSink): void {
  const { span } = occurrence.closingBrace ?? occurrence.name;
  if (line.file === undefined)
    report.error("DYNUPDATE_FILE_MISSING", span, "file is required", { expected: "file DBFILE" });
  else if (line.allow.length === 0)
    report.error("DYNUPDATE_ALLOW_MISSING", span, "at least one allow rule is required", {
      expected: "allow KEY NAME TYPE...",
    });
}

/** One instance for all lines of a block: none has the zone or the database of another. */
export const dynUpdateConfig: ConfigSchema<readonly DynUpdateConfig[]> = merged({
  description: eachLine.description,
  parse(occurrences, context) {
    const lines = eachLine.parse(occurrences, context);
    for (const [index, line] of lines?.entries() ?? []) {
      const occurrence = occurrences[index];
      if (occurrence === undefined) continue;
      reportMissing(line, occurrence, context.report);
      const { zone, database } = line;
      const refuse = (message: string): void =>
        context.report.error("DYNUPDATE_REPEATED", occurrence.name.span, message);
      const former = lines?.slice(0, index) ?? [];
      if (former.some((line) => line.zone.equals(zone)))
        refuse(`zone "${zone}" has a dynupdate line already`);
      const other = former.find((line) => database !== undefined && line.database === database);
      if (other !== undefined) refuse(`database "${database}" is that of zone "${other.zone}"`);
    }
    return lines;
  },
});
