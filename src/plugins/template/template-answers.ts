import { extendedError } from "../../dns/edns.ts";
import type { Name } from "../../dns/name.ts";
import { className, Flag, Rcode, RecordClass, rcodeName } from "../../dns/numbers.ts";
import { PresentationError } from "../../dns/rdata-scanner.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { CNAME } from "../../dns/record-table.ts";
import { parseRecord } from "../../dns/resource-record.ts";
import { RecordType, recordTypeName } from "../../dns/type-names.ts";
import { placeOf, type Template } from "../../expression/templates/template.ts";
import type { TemplateObject } from "../../expression/templates/template-value.ts";
import { LanguageError } from "../../expression/values/language-error.ts";
import type { MetricsRegistry, Next, Outcome, Query } from "../../plugin/index.ts";
import type { TemplateRule } from "./config.ts";
import { type Section, TemplateCounters } from "./counters.ts";
import { type TemplateFacts, type TemplateMatch, templateData } from "./facts.ts";

/** A template made no valid record, or a `var` or `expr` failed. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
  readonly title: string;

  constructor(title: string, message: string) {
    super(`${title}: ${message}`);
    this.title = title;
  }
}

/** Bound for the aliases of one answer that are followed. */
const MAX_ALIASES = 8;

const EVERYTHING: TemplateMatch["groupNumbers"] = new Map();

export class TemplateAnswers {
  readonly #rules: readonly TemplateRule[];
  readonly #counters: TemplateCounters;
  /** Records of templates that use no part of the query except its name. */
  readonly #prepared: ReadonlyMap<Template, ResourceRecord>;

  constructor(rules: readonly TemplateRule[], metrics: MetricsRegistry) {
    this.#rules = rules;
    this.#counters = new TemplateCounters(metrics);
    const templates = rules.flatMap(({ answer, additional, authority }) => [
      ...answer,
      ...additional,
      ...authority,
    ]);
    this.#prepared = new Map(templates.flatMap((template) => preparedRecord(template)));
  }

  handle(query: Query, next: Next): Outcome | Promise<Outcome> {
    let name: string | undefined;
    for (const rule of this.#rules) {
      const zone = rule.zones.matchQuery(query);
      if (zone === undefined || !isAskedFor(rule, query)) continue;
      name ??= query.name.toLowerCase().toString();
      const facts = this.#match(rule, query, name, zone.toLowerCase().toString());
      if (facts instanceof TemplateError) return query.fail(Rcode.SERVFAIL, facts);
      if (facts !== undefined) return this.#answer(rule, facts);
      if (!rule.fallthrough.permits(query.name)) {
        query.trace?.note(`${rule.title} does not apply, and has no fallthrough for the name`);
        return query.fail();
      }
    }
    return next(query);
  }

  /** The data for the templates; `undefined` if no regular expression or a condition does not match. */
  #match(
    rule: TemplateRule,
    query: Query,
    name: string,
    zone: string,
  ): TemplateFacts | TemplateError | undefined {
    const match = matchOf(rule, name);
    if (match === undefined) {
      query.trace?.note(`${rule.title}: no regular expression matches ${name}`);
      return undefined;
    }
    const facts = {
      query,
      name,
      zone,
      match,
      class: rule.class,
      type: rule.type,
      variables: [],
    } satisfies TemplateFacts;
    try {
      return this.#holds(rule, facts) ? facts : undefined;
    } catch (error) {
      if (!(error instanceof LanguageError)) throw error;
      query.trace?.note(`${rule.title}: ${error.message}`);
      return new TemplateError(rule.title, error.message);
    }
  }

  #holds({ title, variables, conditions }: TemplateRule, facts: TemplateFacts): boolean {
    const { trace } = facts.query;
    for (const { name, expression } of variables) {
      const value = expression.evaluate(facts);
      facts.variables.push(value);
      trace?.note(`${title}: var ${name}: ${expression.explain(facts)[0]?.value ?? ""}`, { variable: name });
    }
    for (const condition of conditions) {
      if (condition.evaluate(facts) === true) continue;
      if (trace !== undefined) {
        const parts = condition.explain(facts);
        const values = parts.map(({ text, value }) => `${text} is ${value}`).join(", ");
        trace.note(`${title} does not apply: ${values}`, { expression: condition.text, parts });
      }
      return false;
    }
    return true;
  }

  #answer(rule: TemplateRule, facts: TemplateFacts): Outcome | Promise<Outcome> {
    const { query } = facts;
    const labels = labelsOf(facts);
    if (query.trace?.leavesNoMark !== true) this.#counters.matched(...labels);
    query.trace?.note(`${rule.title} applies: ${facts.match.regex} matches ${facts.name}`, {
      regex: facts.match.regex,
      groups: facts.match.groups,
    });
    if (rule.rcode === Rcode.SERVFAIL) return query.fail(Rcode.SERVFAIL);
    try {
      const answer = this.#render(rule, "answer", facts, labels);
      const additional = this.#render(rule, "additional", facts, labels);
      const authority = this.#render(rule, "authority", facts, labels);
      const resolved = this.#resolve(query, answer);
      if (resolved instanceof Promise)
        return resolved.then((found) =>
          reply(rule, query, found.records, additional, authority, found.truncated),
        );
      return reply(rule, query, resolved.records, additional, authority, resolved.truncated);
    } catch (error) {
      if (error instanceof TemplateError) return query.fail(Rcode.SERVFAIL, error);
      throw error;
    }
  }

  #render(
    rule: TemplateRule,
    section: Section,
    facts: TemplateFacts,
    labels: readonly string[],
  ): ResourceRecord[] {
    const templates = rule[section];
    if (templates.length === 0) return [];
    let data: TemplateObject | undefined;
    let owner: Name | undefined;
    return templates.map((template) => {
      const prepared = this.#prepared.get(template);
      if (prepared !== undefined) {
        owner ??= facts.query.name.toLowerCase();
        return { ...prepared, name: owner };
      }
      data ??= templateData(
        facts,
        rule.variables.map(({ name }) => name),
      );
      const text = this.#execute(rule, section, template, data, labels);
      const record = readRecord(text);
      if (!(record instanceof PresentationError)) return record;
      this.#counters.recordFailed(section, template.text, labels);
      throw new TemplateError(rule.title, `no record in "${text}": ${record.message}`);
    });
  }

  #execute(
    rule: TemplateRule,
    section: Section,
    template: Template,
    data: TemplateObject,
    labels: readonly string[],
  ): string {
    try {
      return template.execute(data);
    } catch (error) {
      if (!(error instanceof LanguageError)) throw error;
      this.#counters.templateFailed(section, template.text, labels);
      const { line, column } = placeOf(template.text, error);
      throw new TemplateError(
        rule.title,
        `line ${line}, column ${column} of "${template.text}": ${error.message}`,
      );
    }
  }

  /** Follows aliases in answers to queries for addresses, each by a lookup of its own. */
  #resolve(query: Query, answer: readonly ResourceRecord[]): Resolved | Promise<Resolved> {
    const asksForAddress = query.type === RecordType.A || query.type === RecordType.AAAA;
    // Aliases may lead back to templates with several aliases: below the client's question only one is followed, so
    // that they do not multiply.
    const most = query.depth === 0 ? MAX_ALIASES : 1;
    const aliases = asksForAddress ? answer.filter((record) => CNAME.is(record)).slice(0, most) : [];
    if (aliases.length === 0) return { records: answer, truncated: false };
    const outcomes = aliases.map(({ data }) => query.lookup(data.target, query.type));
    if (outcomes.some((outcome) => outcome instanceof Promise)) {
      const waiting = outcomes.map(async (outcome) => outcome);
      return Promise.all(waiting).then((settled) => joined(answer, settled));
    }
    return joined(answer, outcomes as readonly Outcome[]);
  }
}

/** The data of a record has at most 65,535 octets, each of which takes at most four characters. */
const MAX_RECORD_TEXT = 4 * 0xffff + 1_024;

/** The record of a template such as `{{ .Name }} 60 IN A 192.0.2.1`, without its owner. */
function preparedRecord(template: Template): (readonly [Template, ResourceRecord])[] {
  const text = template.textBehind("Name");
  if (text === undefined || !/^\s/.test(text)) return [];
  const record = readRecord(`.${text}`);
  return record instanceof PresentationError ? [] : [[template, record]];
}

/** Parses one record; further lines are ignored. */
function readRecord(text: string): ResourceRecord | PresentationError {
  if (text.length > MAX_RECORD_TEXT) return new PresentationError("", 1, "longer than any record");
  try {
    const record = parseRecord(firstLine(text));
    return record.class === RecordClass.ANY
      ? new PresentationError(text, 1, "no record has the class ANY")
      : record;
  } catch (error) {
    if (error instanceof PresentationError) return error;
    throw error;
  }
}

/** Ends at the first line break outside quotes and parentheses. */
function firstLine(text: string): string {
  const line = /^\s*(?:"(?:\\.|[^"\\])*"|\((?:"(?:\\.|[^"\\])*"|[^)"])*\)|\\.|[^"\\\n(])+/s.exec(text);
  return line?.[0] ?? text;
}

interface Resolved {
  readonly records: readonly ResourceRecord[];
  readonly truncated: boolean;
}

/** The result of each lookup follows its alias. */
function joined(answer: readonly ResourceRecord[], outcomes: readonly Outcome[]): Resolved {
  const left = [...outcomes];
  let truncated = false;
  const records = answer.flatMap((record) => {
    const outcome = CNAME.is(record) ? left.shift() : undefined;
    if (outcome?.kind !== "reply") return [record];
    truncated ||= outcome.truncated;
    return [record, ...outcome.answer];
  });
  return { records, truncated };
}

function isAskedFor({ class: recordClass, type }: TemplateRule, query: Query): boolean {
  const isClass =
    recordClass === RecordClass.ANY || query.class === RecordClass.ANY || query.class === recordClass;
  return isClass && (type === RecordType.ANY || query.type === RecordType.ANY || query.type === type);
}

function matchOf({ patterns }: TemplateRule, name: string): TemplateMatch | undefined {
  if (patterns.length === 0) return { regex: ".*", groups: [name], groupNumbers: EVERYTHING };
  for (const pattern of patterns) {
    const found = pattern.match(name);
    if (found !== undefined)
      return { regex: pattern.source, groups: found.groups, groupNumbers: pattern.groupNumbers };
  }
  return undefined;
}

/** Labels of the metrics. */
function labelsOf(facts: TemplateFacts): string[] {
  const { query } = facts;
  return [
    query.listener.label,
    facts.zone,
    query.view,
    className(facts.class === RecordClass.ANY ? query.class : facts.class),
    recordTypeName(facts.type === RecordType.ANY ? query.type : facts.type),
  ];
}

function reply(
  { rcode, extendedError: error, title }: TemplateRule,
  query: Query,
  answer: readonly ResourceRecord[],
  additional: readonly ResourceRecord[],
  authority: readonly ResourceRecord[],
  truncated: boolean,
): Outcome {
  query.trace?.note(`${title} answers ${rcodeName(rcode)}`);
  const made = query.reply({
    rcode,
    authoritative: true,
    answer,
    additional,
    authority,
    ...(error !== undefined && {
      edns: { udpSize: 4096, version: 0, dnssecOk: true, options: [extendedError(error.code, error.text)] },
    }),
  });
  made.setFlag(Flag.TC, truncated);
  return made;
}
