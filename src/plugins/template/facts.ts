/** The data of a query for templates and their expressions. */
import { className, RecordClass } from "../../dns/numbers.ts";
import { RecordType, recordTypeName } from "../../dns/type-names.ts";
import type { Environment, EnvironmentVariable } from "../../expression/evaluation/environment.ts";
import type {
  TemplateMember,
  TemplateObject,
  TemplateValue,
} from "../../expression/templates/template-value.ts";
import { TextMap } from "../../expression/templates/template-value.ts";
import { STRING, UNKNOWN } from "../../expression/values/types.ts";
import type { ExpressionValue } from "../../expression/values/values.ts";
import { queryFunctions } from "../../plugin/facts/query-environment.ts";
import type { Query } from "../../plugin/index.ts";

/** One match of a query: the data of `group()` and `.Group`. */
export interface TemplateMatch {
  readonly regex: string;
  /** The whole match, followed by the groups. */
  readonly groups: readonly string[];
  readonly groupNumbers: ReadonlyMap<string, number>;
}

export interface TemplateFacts {
  readonly query: Query;
  /** In lower case. */
  readonly name: string;
  readonly zone: string;
  readonly match: TemplateMatch;
  /** The class of the directive; `ANY` is replaced by the query's. */
  readonly class: number;
  readonly type: number;
  /** Values of `var`, in order. */
  readonly variables: ExpressionValue[];
}

const FUNCTIONS = queryFunctions((facts: TemplateFacts) => facts.query);

/** The functions for queries, and `group()`. */
export function templateEnvironment(
  variables: ReadonlyMap<string, EnvironmentVariable<TemplateFacts>>,
): Environment<TemplateFacts> {
  return { functions: WITH_GROUP, variables };
}

const WITH_GROUP = new Map([
  ...FUNCTIONS,
  [
    "group",
    {
      parameters: [UNKNOWN],
      result: STRING,
      call: ({ match }: TemplateFacts, key: ExpressionValue) => groupOf(match, key),
    },
  ],
] as const);

/** A group by number or name; empty if it does not exist. */
function groupOf({ groups, groupNumbers }: TemplateMatch, key: ExpressionValue): string {
  if (typeof key === "number") return groups[key] ?? "";
  if (typeof key !== "string") return "";
  const number = groupNumbers.get(key) ?? (/^\d+$/.test(key) ? Number(key) : -1);
  return groups[number] ?? "";
}

/** A field that is always set. */
function plain(get: () => TemplateValue): TemplateMember {
  return { parameters: 0, get };
}

function objectOf(
  typeName: string,
  fields: Readonly<Record<string, TemplateMember>>,
  text: () => string,
): TemplateObject {
  return { typeName, text, field: (name) => (Object.hasOwn(fields, name) ? fields[name] : undefined) };
}

/** The dot of a template. */
export function templateData(facts: TemplateFacts, variableNames: readonly string[]): TemplateObject {
  const { query, match } = facts;
  const fields: Readonly<Record<string, TemplateMember>> = {
    Zone: plain(() => facts.zone),
    Name: plain(() => facts.name),
    Regex: plain(() => match.regex),
    Match: plain(() => match.groups),
    Group: plain(() => groupsByName(match)),
    Class: plain(() => className(facts.class === RecordClass.ANY ? query.class : facts.class)),
    Type: plain(() => typeText(facts.type === RecordType.ANY ? query.type : facts.type)),
    Message: plain(() => messageOf(query)),
    Question: plain(() => questionOf(query)),
    Remote: plain(() => query.client.address),
    Var: plain(() => new Map(variableNames.map((name, at) => [name, facts.variables[at] ?? null]))),
    Meta: { parameters: 1, get: ([label = ""]) => query.metadataValue(label) ?? "" },
  };
  return objectOf(
    "template data",
    fields,
    () => `{${facts.zone} ${facts.name} ${match.regex} ${query.client.address}}`,
  );
}

/** Empty for a type without a name. */
function typeText(type: number): string {
  const name = recordTypeName(type);
  return name.startsWith("TYPE") ? "" : name;
}

function groupsByName({ groups, groupNumbers }: TemplateMatch): TextMap {
  const byName = new TextMap(groups.map((text, number) => [String(number), text]));
  for (const [name, number] of groupNumbers) byName.set(name, groups[number] ?? "");
  return byName;
}

function questionOf(query: Query): TemplateObject {
  const text = () => `;${query.name}\t${className(query.class)}\t ${recordTypeName(query.type)}`;
  return objectOf(
    "dns.Question",
    {
      Name: plain(() => query.name.toString()),
      Qtype: plain(() => query.type),
      Qclass: plain(() => query.class),
      String: plain(text),
    },
    text,
  );
}

/** Header, question and EDNS; a query contains hardly anything else. */
function messageOf(query: Query): TemplateObject {
  const header = {
    Id: plain(() => query.id),
    Opcode: plain(() => query.opcode),
    RecursionDesired: plain(() => query.recursionDesired),
    CheckingDisabled: plain(() => query.checkingDisabled),
    AuthenticatedData: plain(() => query.authenticData),
  };
  const text = () => `;; id: ${query.id}\n${questionOf(query).text()}`;
  return objectOf(
    "dns.Msg",
    {
      ...header,
      MsgHdr: plain(() => objectOf("dns.MsgHdr", header, () => `;; id: ${query.id}`)),
      Question: plain(() => [questionOf(query)]),
      Answer: plain(() => []),
      Ns: plain(() => []),
      Extra: plain(() => (query.hasEdns ? [ednsOf(query)] : [])),
      Len: plain(() => query.length),
      IsEdns0: plain(() => (query.hasEdns ? ednsOf(query) : null)),
    },
    text,
  );
}

function ednsOf(query: Query): TemplateObject {
  return objectOf(
    "dns.OPT",
    {
      UDPSize: plain(() => query.edns?.udpSize ?? 0),
      Do: plain(() => query.dnssecOk),
      Version: plain(() => query.ednsVersion),
    },
    () => `EDNS: version ${query.ednsVersion}`,
  );
}
