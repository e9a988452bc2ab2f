/** Parses a YAML test file and reports all faults at once. */

import { isNode, LineCounter, parseDocument } from "yaml";
import { FLAG_NAMES } from "../../dns/message-text.ts";
import { Name, NameError } from "../../dns/name.ts";
import { parseRcode, rcodeName } from "../../dns/numbers.ts";
import { parseRecordType } from "../../dns/type-names.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import { ExpectedRecord, type TtlRange } from "./expected-record.ts";
import { type ScriptedUpstream, UpstreamScript } from "./upstream-script.ts";

export interface TestFile {
  readonly file: string;
  /** Text, or a path relative to the file. */
  readonly corefile: string;
  readonly fixtures: Fixtures;
  readonly cases: readonly TestCase[];
}

export interface Fixtures {
  /** Texts and paths relative to the file; `undefined` to use the sources of the Corefile. */
  readonly manifests: readonly string[] | undefined;
  /** Text of a hosts file. */
  readonly hosts: string | undefined;
  /** By the TO word of `forward`; `*` for all others. */
  readonly upstreams: ReadonlyMap<string, ScriptedUpstream>;
  /** Unix time at the start, milliseconds. */
  readonly time: number | undefined;
}

export interface TestCase {
  readonly title: string;
  /** From 1. */
  readonly line: number;
  readonly name: Name;
  readonly type: number;
  readonly client: string | undefined;
  readonly overTcp: boolean;
  readonly dnssecOk: boolean;
  /** `dns://:53`; `undefined` for the first that has a block for the name. */
  readonly listener: string | undefined;
  /** Milliseconds that pass before the query. */
  readonly advance: number;
  readonly expect: Expectation;
}

/** Members that are not given are not compared, except for the rcode. */
export interface Expectation {
  readonly rcode: string;
  readonly answer: readonly ExpectedRecord[] | undefined;
  readonly authority: readonly ExpectedRecord[] | undefined;
  readonly additional: readonly ExpectedRecord[] | undefined;
  /** Lower case, in any order. */
  readonly flags: readonly string[] | undefined;
  /** For each record of the answer. */
  readonly ttl: TtlRange | undefined;
  readonly plugin: string | undefined;
  /** The TO words asked, in any order, each once; empty for none. */
  readonly upstreams: readonly string[] | undefined;
}

/** A file without usable tests. */
export class TestFileError extends Error {
  override readonly name = "TestFileError";
}

const MAX_ALIASES = 100;

/** @throws TestFileError with one line per fault, each with its place */
export function parseTestFile(text: string, file: string): TestFile {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false, logLevel: "silent" });
  const lineAt = (offset: number): number => lineCounter.linePos(offset).line;
  const faults = document.errors.map(
    ({ pos, message }) => `${file}:${lineAt(pos[0])}: not valid YAML: ${message}`,
  );
  if (faults.length > 0) throw new TestFileError(faults.join("\n"));
  const reader = new TestFileReader((path) => {
    // The deepest existing part of the path.
    for (let length = path.length; length > 0; length--) {
      const node = document.getIn(path.slice(0, length), true);
      if (isNode(node)) return lineAt(node.range?.[0] ?? 0);
    }
    return 1;
  });
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    throw new TestFileError(`${file}:1: not valid YAML: ${messageOf(error)}`);
  }
  const parsed = reader.file(value, file);
  if (reader.faults.length > 0)
    throw new TestFileError(
      reader.faults.map(({ line, message }) => `${file}:${line}: ${message}`).join("\n"),
    );
  return parsed;
}

type Path = readonly (string | number)[];
type Fields = Readonly<Record<string, unknown>>;

class TestFileReader {
  readonly faults: { readonly line: number; readonly message: string }[] = [];
  readonly #lineOf: (path: Path) => number;

  constructor(lineOf: (path: Path) => number) {
    this.#lineOf = lineOf;
  }

  file(value: unknown, file: string): TestFile {
    const fields = this.#fields(value, [], ["corefile", "fixtures", "cases"]);
    const corefile = this.#text(fields, [], "corefile") ?? "";
    if (corefile === "" && this.faults.length === 0)
      this.#fault([], "corefile is missing: its text, or a path");
    const cases = fields.cases;
    if (!Array.isArray(cases) || cases.length === 0)
      this.#fault(["cases"], "cases: expected a list with one case or more");
    return {
      file,
      corefile,
      fixtures: this.#fixtures(fields.fixtures ?? {}),
      cases: (Array.isArray(cases) ? cases : []).map((each, index) => this.#case(each, ["cases", index])),
    };
  }

  #fixtures(value: unknown): Fixtures {
    const path = ["fixtures"];
    const fields = this.#fields(value, path, ["manifests", "hosts", "upstreams", "time"]);
    const upstreams = new Map<string, ScriptedUpstream>();
    const listed =
      fields.upstreams === undefined ? {} : this.#object(fields.upstreams, [...path, "upstreams"]);
    for (const [word, script] of Object.entries(listed))
      upstreams.set(word, this.#upstream(script, [...path, "upstreams", word]));
    const time = this.#text(fields, path, "time");
    const unixTime = time === undefined ? undefined : Date.parse(time);
    if (Number.isNaN(unixTime))
      this.#fault([...path, "time"], `time: "${time}" is not a time such as 2026-01-01T00:00:00Z`);
    return {
      manifests: fields.manifests === undefined ? undefined : this.#texts(fields, path, "manifests"),
      hosts: this.#text(fields, path, "hosts"),
      upstreams,
      time: unixTime,
    };
  }

  #upstream(value: unknown, path: Path): ScriptedUpstream {
    const fields =
      typeof value === "string"
        ? { records: value }
        : this.#fields(value, path, ["records", "rcode", "down"]);
    const rcode = this.#rcode(fields, path) ?? "NXDOMAIN";
    const script = new UpstreamScript(parseRcode(rcode) ?? 0);
    for (const line of linesOf(this.#texts(fields, path, "records"))) {
      const problem = script.add(line);
      if (problem !== undefined) this.#fault([...path, "records"], `"${line}": ${problem}`);
    }
    return { script, isDown: this.#flag(fields, path, "down") };
  }

  #case(value: unknown, path: Path): TestCase {
    const keys = ["name", "query", "from", "tcp", "dnssec", "listener", "advance", "expect"];
    const fields = this.#fields(value, path, keys);
    const query = this.#text(fields, path, "query") ?? "";
    const [nameText = "", typeText = "A", ...rest] = query.trim().split(/\s+/);
    const type = parseRecordType(typeText.toUpperCase());
    if (nameText === "" || rest.length > 0)
      this.#fault([...path, "query"], "query: expected NAME, or NAME TYPE");
    else if (type === undefined) this.#fault([...path, "query"], `query: ${typeText} is not a record type`);
    const client = this.#text(fields, path, "from");
    if (client !== undefined && parseIpAddress(client) === undefined)
      this.#fault([...path, "from"], `from: "${client}" is not an IP address`);
    const advance = this.#text(fields, path, "advance");
    const milliseconds = advance === undefined ? 0 : parseGoDuration(advance);
    if (milliseconds === undefined || milliseconds < 0)
      this.#fault([...path, "advance"], `advance: "${advance}" is not a duration such as 30s`);
    return {
      title: this.#text(fields, path, "name") ?? query,
      line: this.#lineOf(path),
      name: this.#name(nameText, [...path, "query"]),
      type: type ?? 1,
      client,
      overTcp: this.#flag(fields, path, "tcp"),
      dnssecOk: this.#flag(fields, path, "dnssec"),
      listener: this.#text(fields, path, "listener"),
      advance: milliseconds ?? 0,
      expect: this.#expectation(fields.expect, [...path, "expect"]),
    };
  }

  #expectation(value: unknown, path: Path): Expectation {
    const sections = ["answer", "authority", "additional"] as const;
    const keys = ["rcode", ...sections, "flags", "ttl", "plugin", "upstream"];
    if (value === undefined) this.#fault(path, "expect is missing: the expected answer");
    const fields = this.#fields(value ?? {}, path, keys);
    const records = (section: (typeof sections)[number]): readonly ExpectedRecord[] | undefined =>
      fields[section] === undefined
        ? undefined
        : linesOf(this.#texts(fields, path, section)).flatMap((line) =>
            this.#record(line, [...path, section]),
          );
    const flags = fields.flags === undefined ? undefined : this.#words(fields, path, "flags");
    for (const flag of flags ?? [])
      if (!FLAG_NAMES.includes(flag))
        this.#fault(
          [...path, "flags"],
          `flags: unknown flag "${flag}", expected some of ${FLAG_NAMES.join(" ")}`,
        );
    const upstreams =
      fields.upstream === undefined ? undefined : this.#words(fields, path, "upstream", false);
    return {
      rcode: this.#rcode(fields, path) ?? "NOERROR",
      answer: records("answer"),
      authority: records("authority"),
      additional: records("additional"),
      flags,
      ttl: this.#ttl(fields, path),
      plugin: this.#text(fields, path, "plugin"),
      upstreams: upstreams?.filter((word) => word !== "none"),
    };
  }

  #record(line: string, path: Path): ExpectedRecord[] {
    const record = ExpectedRecord.parse(line);
    if (record instanceof ExpectedRecord) return [record];
    this.#fault(path, `"${line}": ${record.problem}`);
    return [];
  }

  #ttl(fields: Fields, path: Path): TtlRange | undefined {
    const text = this.#text(fields, path, "ttl");
    const [, least, most = least] = /^(\d+)(?:-(\d+))?$/.exec(text ?? "") ?? [];
    if (text === undefined) return undefined;
    if (least === undefined)
      this.#fault([...path, "ttl"], `ttl: "${text}" is neither seconds nor a range such as 1-30`);
    return { least: Number(least), most: Number(most) };
  }

  #rcode(fields: Fields, path: Path): string | undefined {
    const text = this.#text(fields, path, "rcode");
    if (text === undefined) return undefined;
    const code = parseRcode(text);
    if (code === undefined)
      this.#fault([...path, "rcode"], `rcode: "${text}" is not an rcode, such as NXDOMAIN`);
    return code === undefined ? text : rcodeName(code);
  }

  #name(text: string, path: Path): Name {
    try {
      return Name.parse(text.endsWith(".") ? text : `${text}.`);
    } catch (error) {
      if (!(error instanceof NameError)) throw error;
      this.#fault(path, `query: ${error.message}`);
      return Name.root;
    }
  }

  #words(fields: Fields, path: Path, key: string, lowerCase = true): string[] {
    const words = this.#texts(fields, path, key).flatMap((text) => text.trim().split(/[\s,]+/));
    return words.filter((word) => word !== "").map((word) => (lowerCase ? word.toLowerCase() : word));
  }

  #text(fields: Fields, path: Path, key: string): string | undefined {
    const value = fields[key];
    if (value === undefined || value === null) return undefined;
    if (typeof value === "string" || typeof value === "number") return String(value);
    this.#fault([...path, key], `${key}: expected text`);
    return undefined;
  }

  /** Text, or a list of texts. */
  #texts(fields: Fields, path: Path, key: string): string[] {
    const value = fields[key] ?? [];
    const texts: unknown[] = Array.isArray(value) ? value : [value];
    if (!texts.every((text) => typeof text === "string")) {
      this.#fault([...path, key], `${key}: expected text, or a list of texts`);
      return [];
    }
    return texts;
  }

  #flag(fields: Fields, path: Path, key: string): boolean {
    const value = fields[key] ?? false;
    if (typeof value !== "boolean") this.#fault([...path, key], `${key}: expected true or false`);
    return value === true;
  }

  #fields(value: unknown, path: Path, known: readonly string[]): Fields {
    const fields = this.#object(value, path);
    for (const key of Object.keys(fields)) {
      if (known.includes(key)) continue;
      const near = nearestWord(key, known);
      const hint = near === undefined ? `expected one of ${known.join(", ")}` : `did you mean "${near}"?`;
      this.#fault([...path, key], `unknown key "${key}": ${hint}`);
    }
    return fields;
  }

  #object(value: unknown, path: Path): Fields {
    if (isFields(value)) return value;
    this.#fault(path, `${path.at(-1) ?? "a test file"}: expected a mapping`);
    return {};
  }

  #fault(path: Path, message: string): void {
    this.faults.push({ line: this.#lineOf(path), message });
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Non-empty lines without zone-file comments. */
function linesOf(texts: readonly string[]): string[] {
  return texts
    .flatMap((text) => text.split("\n"))
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith(";"));
}
