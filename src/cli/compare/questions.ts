/** The questions to ask: read from captures and logs, each once, with the number of times that clients asked it. */
import { createReadStream } from "node:fs";
import { Name } from "../../dns/name.ts";
import { parseRecordType, RecordType, recordTypeName } from "../../dns/type-names.ts";
import { isObject } from "../../kubernetes/objects/json.ts";
import { linesOf, TooLongLine } from "../doctor/lines.ts";
import { FlagError } from "../flag-table.ts";
import { isQueryRow } from "../live/tail.ts";
import { faultOfFile } from "../readable-file.ts";

export interface AskedQuestion {
  /** In lower case. */
  readonly name: Name;
  readonly type: number;
  /** How often the source has it. */
  times: number;
}

/** Of the request in CoreDNS's query log: type, class, name, protocol. */
const LOGGED = /"([A-Z0-9]+) (IN|CH|HS|ANY|NONE|CLASS\d+) (\S+) (?:udp|tcp|tls|https3?|quic|grpc) /;

/** Some 200 bytes each. */
const MAX_QUESTIONS = 1_000_000;

export class Questions {
  readonly #byKey = new Map<string, AskedQuestion>();
  /** Questions of other classes, and transfers. */
  leftOut = 0;
  /** Lines without a question, such as errors in a log. */
  otherLines = 0;

  get all(): readonly AskedQuestion[] {
    return [...this.#byKey.values()];
  }

  /** Adds a question that no client asked; one that is there stays as it is. @throws FlagError */
  addOnce(name: Name, type: number): void {
    if (!this.#byKey.has(keyOf(name.toLowerCase(), type))) this.add(name, type);
  }

  /** @throws FlagError */
  add(name: Name, type: number, times = 1): void {
    if (type === RecordType.AXFR || type === RecordType.IXFR || type === RecordType.OPT) {
      this.leftOut += times;
      return;
    }
    const lower = name.toLowerCase();
    const key = keyOf(lower, type);
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      known.times += times;
      return;
    }
    if (this.#byKey.size === MAX_QUESTIONS)
      throw new FlagError(`more than ${MAX_QUESTIONS} different questions: compare a part of them`, 2, false);
    this.#byKey.set(key, { name: lower, type, times });
  }
}

function keyOf(name: Name, type: number): string {
  return `${name} ${type}`;
}

/**
 * Adds the questions of a file.
 * @throws FlagError naming the line that cannot be read
 */
export async function readQuestions(file: string, into: Questions): Promise<void> {
  if (file === "-") return readLines(process.stdin, "standard input", into);
  const fault = faultOfFile(file, { maxMebibytes: Number.POSITIVE_INFINITY });
  if (fault !== undefined) throw new FlagError(`-queries ${file}: ${fault}`, 2, false);
  await readLines(createReadStream(file), file, into);
}

async function readLines(chunks: AsyncIterable<Uint8Array>, file: string, into: Questions): Promise<void> {
  /** The first line that cannot be read: an error, unless the file is a log. */
  let unread: { readonly number: number; readonly text: string } | undefined;
  let unreadLines = 0;
  let isLog = false;
  try {
    for await (const lines of linesOf(chunks))
      for (const { text, number } of lines) {
        const line = (number === 1 ? text.replace(/^\ufeff/, "") : text).trim();
        if (line === "" || /^[#;]/.test(line)) continue;
        const kind = readLine(line, into);
        if (kind === "log") isLog = true;
        if (kind !== undefined) continue;
        unread ??= { number, text: line };
        unreadLines++;
      }
  } catch (error) {
    if (error instanceof TooLongLine)
      throw new FlagError(`${file}:${error.number}: the line is too long`, 2, false);
    if (error instanceof Error && "code" in error) throw new FlagError(`${file}: ${error.message}`, 2, false);
    throw error;
  }
  if (unread !== undefined && !isLog)
    throw new FlagError(
      `${file}:${unread.number}: ${JSON.stringify(unread.text.slice(0, 80))} is not a question: write NAME TYPE, or name a query log or a capture of portolan tail -json`,
      2,
      false,
    );
  into.otherLines += unreadLines;
}

/** @returns the form of the line, or `undefined` if it has no question */
function readLine(line: string, into: Questions): "log" | "pair" | undefined {
  if (line.startsWith("{")) return readJson(line, into) ? "log" : undefined;
  if (readLogged(line, into)) return "log";
  const [name = "", type = "", ...rest] = line.split(/\s+/);
  return rest.length === 0 && addText(name, type, into) ? "pair" : undefined;
}

/** A row of `portolan tail -json`, or a line of a log in JSON. */
function readJson(line: string, into: Questions): boolean {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return false;
  }
  if (isQueryRow(value)) return addText(value.name, value.type, into, value.weight);
  return isObject(value) && typeof value.msg === "string" && readLogged(value.msg, into);
}

function readLogged(text: string, into: Questions): boolean {
  const [, type, queryClass, name] = LOGGED.exec(text) ?? [];
  if (type === undefined || name === undefined) return false;
  if (queryClass === "IN") return addText(name, type, into);
  into.leftOut++;
  return true;
}

function addText(nameText: string, typeText: string, into: Questions, times = 1): boolean {
  const name = Name.tryParse(nameText.endsWith(".") ? nameText : `${nameText}.`);
  const type = parseRecordType(typeText);
  if (name === undefined || type === undefined) return false;
  into.add(name, type, times);
  return true;
}

/** `web.shop.svc.cluster.local. A` */
export function questionText({ name, type }: Pick<AskedQuestion, "name" | "type">): string {
  return `${name} ${recordTypeName(type)}`;
}
