/** Captures as text: JSON lines as `portolan tail -json` writes them, with facts about the server among them. */

import { closeSync, fstatSync, ftruncateSync, openSync, statSync } from "node:fs";
import {
  FACTS_SCHEMA,
  FAILED_NAME_SCHEMA,
  IMPOSSIBLE_NAME_SCHEMA,
  POD_SCHEMA,
} from "../../console/api-schema.ts";
import type { QueryRow } from "../../console/api-types.ts";
import type {
  Capture,
  CapturedServer,
  FailedName,
  ImpossibleName,
  PodTemplate,
} from "../../console/doctor/capture.ts";
import { TrafficCounter } from "../../console/doctor/traffic-counter.ts";
import { hasShape } from "../../console/json-shape.ts";
import { member } from "../../kubernetes/objects/json.ts";
import { writeAllSync } from "../../lib/logging/log.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { FlagError } from "../flag-table.ts";
import { isQueryRow } from "../live/tail.ts";
import { linesOf, type NumberedLine, TooLongLine } from "./lines.ts";

/** One line of a capture. */
export type CaptureLine =
  | QueryRow
  | { readonly facts: CapturedServer }
  | { readonly impossible: ImpossibleName }
  | { readonly failure: FailedName }
  | { readonly pod: PodTemplate };

/** Builds a capture line by line. Queries are counted and dropped. */
export class CaptureBuilder {
  readonly #traffic = new TrafficCounter();
  #first: CapturedServer | undefined;
  #last: CapturedServer | undefined;
  #impossible: ImpossibleName | undefined;
  #pod: PodTemplate | undefined;
  readonly #failures: FailedName[] = [];

  add(line: CaptureLine): void {
    if ("facts" in line) this.#addFacts(line.facts);
    else if ("impossible" in line) this.#impossible = line.impossible;
    else if ("failure" in line) this.#failures.push(line.failure);
    else if ("pod" in line) this.#pod = line.pod;
    else this.#traffic.add(line);
  }

  /** Queries so far. */
  get rows(): number {
    return this.#traffic.rows;
  }

  get isEmpty(): boolean {
    return this.rows === 0 && this.#last === undefined;
  }

  capture(): Capture {
    const first = this.#first === this.#last ? undefined : this.#first;
    return {
      ...{ traffic: this.#traffic, first, last: this.#last },
      ...{ impossible: this.#impossible, failures: this.#failures, pod: this.#pod },
    };
  }

  #addFacts(facts: CapturedServer): void {
    // A restarted server counts from 0.
    if (this.#first?.now.startedAt !== facts.now.startedAt) this.#first = facts;
    this.#last = facts;
  }
}

/** Writes a capture to a file as it arrives. */
export class CaptureRecorder {
  readonly #file: string;
  readonly #descriptor: number;
  #text = "";
  #hasBegun = false;
  #writing: NodeJS.Immediate | undefined;
  #fault: unknown;

  /** @throws FlagError */
  constructor(file: string) {
    this.#file = file;
    try {
      // The old content stays until there is something to write: the server may not be running.
      this.#descriptor = openSync(file, "a");
    } catch (error) {
      throw this.#told(error);
    }
  }

  /** @throws FlagError if an earlier line could not be written */
  add(line: CaptureLine): void {
    if (this.#fault !== undefined) throw this.#told(this.#fault);
    this.#text += `${JSON.stringify(line)}\n`;
    // Lines that arrive together are written together.
    this.#writing ??= setImmediate(() => this.#write());
  }

  /** @throws FlagError */
  close(): void {
    clearImmediate(this.#writing);
    this.#write();
    closeSync(this.#descriptor);
    if (this.#fault !== undefined) throw this.#told(this.#fault);
  }

  #write(): void {
    this.#writing = undefined;
    if (this.#text === "") return;
    try {
      if (!this.#hasBegun && fstatSync(this.#descriptor).isFile()) ftruncateSync(this.#descriptor);
      this.#hasBegun = true;
      writeAllSync(this.#descriptor, this.#text);
    } catch (error) {
      this.#fault ??= error;
    }
    this.#text = "";
  }

  #told(error: unknown): FlagError {
    const reason = messageOf(error);
    return new FlagError(`-record ${this.#file}: ${reason}`, 2, false);
  }
}

/**
 * Reads a capture to its end.
 * @param file its name in error messages
 * @throws FlagError naming the line that is neither a query nor facts
 */
export async function readCapture(
  chunks: AsyncIterable<Uint8Array>,
  file: string,
  add: (line: CaptureLine) => void,
): Promise<void> {
  try {
    for await (const lines of linesOf(chunks)) for (const line of lines) readLine(line, file, add);
  } catch (error) {
    if (error instanceof TooLongLine) throw noCapture(file, error.number);
    if (error instanceof Error && "code" in error) throw new FlagError(`${file}: ${error.message}`, 2, false);
    throw error;
  }
}

function readLine(
  { text, number, isWhole }: NumberedLine,
  file: string,
  add: (line: CaptureLine) => void,
): void {
  if (text.trim() === "") return;
  // Windows editors and shells begin a text with a byte order mark.
  const value = parsed(number === 1 ? text.replace(/^\ufeff/, "") : text);
  // The writer may have been stopped in the middle of the last line.
  if (value === undefined && number > 1 && !isWhole) return;
  const facts = member(value, "facts");
  const impossible = member(value, "impossible");
  const failure = member(value, "failure");
  const pod = member(value, "pod");
  if (isQueryRow(value)) add(value);
  else if (isFacts(facts)) add({ facts });
  else if (isImpossible(impossible)) add({ impossible });
  else if (isFailure(failure)) add({ failure });
  else if (isPod(pod)) add({ pod });
  else throw noCapture(file, number);
}

function noCapture(file: string, line: number): FlagError {
  return new FlagError(
    `${file}:${line}: neither a query nor facts about a server: a capture is what 'portolan doctor -record' or 'portolan tail -json' writes`,
    2,
    false,
  );
}

/** Whether two paths are the same file. */
export function isSameFile(one: string, other: string): boolean {
  const [first, second] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false, bigint: true }));
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
}

/** Whether all members that the rules read are present. */
export function isFacts(value: unknown): value is CapturedServer {
  return hasShape(FACTS_SCHEMA, value);
}

function isImpossible(value: unknown): value is ImpossibleName {
  return hasShape(IMPOSSIBLE_NAME_SCHEMA, value);
}

function isFailure(value: unknown): value is FailedName {
  return hasShape(FAILED_NAME_SCHEMA, value);
}

function isPod(value: unknown): value is PodTemplate {
  return hasShape(POD_SCHEMA, value);
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
