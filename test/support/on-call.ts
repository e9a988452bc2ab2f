/** What someone on call asks of a running server: `explain`, `doctor`, and the API of the console. */
import assert from "node:assert/strict";
import type { ConfigurationAnswer, NowView } from "../../src/console/api-types.ts";
import type { Diagnosis } from "../../src/console/doctor/diagnose.ts";
import type { Finding, FindingCode } from "../../src/console/doctor/finding.ts";
import type { Explanation } from "../../src/plugin/contract/explanation.ts";
import { type Portolan, runPortolan } from "./portolan.ts";

/** What `portolan doctor` says of the server, with its port named `console`. */
export class Examination {
  readonly #diagnosis: Diagnosis;

  private constructor(diagnosis: Diagnosis) {
    this.#diagnosis = diagnosis;
  }

  static async of(server: Portolan, ...args: readonly string[]): Promise<Examination> {
    const flags = ["-server", consoleOf(server), "-for", "0s", "-format", "json"];
    const { code, output, errors } = await runPortolan(["doctor", ...flags, ...args]);
    assert.equal(errors, "");
    const diagnosis: Diagnosis = JSON.parse(output);
    assert.equal(code, diagnosis.findings.length === 0 ? 0 : 1);
    return new Examination(diagnosis);
  }

  get codes(): readonly FindingCode[] {
    return this.#diagnosis.findings.map(({ code }) => code);
  }

  /** Title and causes of a finding as one text. @throws without such a finding */
  words(code: FindingCode): string {
    const { title, causes } = this.finding(code);
    return [title, ...causes.map(({ who, figure }) => `${who}  ${figure}`)].join("\n");
  }

  finding(code: FindingCode): Finding {
    const found = this.#diagnosis.findings.find((each) => each.code === code);
    assert.ok(found, `no ${code}: ${JSON.stringify(this.#diagnosis, undefined, 1)}`);
    return found;
  }

  /** Why a rule could not run. */
  notExamined(code: FindingCode): string {
    return this.#diagnosis.notExamined.find((each) => each.code === code)?.reason ?? "";
  }

  /** Commands and fragments of the remedies. */
  patches(code: FindingCode): readonly string[] {
    return this.finding(code).remedies.flatMap(({ patch }) => patch ?? []);
  }
}

export function consoleOf(server: Portolan): string {
  return `127.0.0.1:${server.portOf("console")}`;
}

/** What `portolan explain -server` prints. */
export async function explain(server: Portolan, name: string, ...args: readonly string[]): Promise<string> {
  const { code, output, errors } = await runPortolan([
    "explain",
    name,
    ...args,
    "-server",
    consoleOf(server),
  ]);
  assert.deepEqual([code, errors], [0, ""]);
  return output;
}

/** The notes of the plugins, as the console's *Why* shows them, a line each: `PLUGIN DECISION: NOTE; NOTE`. */
export async function why(server: Portolan, name: string): Promise<string> {
  const response = await fetch(`http://${consoleOf(server)}/api/v1/explain`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name, type: "A" }),
  });
  const { steps } = (await response.json()) as Explanation;
  return steps
    .map(
      ({ plugin, decision, notes }) => `${plugin} ${decision}: ${notes.map(({ text }) => text).join("; ")}`,
    )
    .join("\n");
}

export async function consoleNow(server: Portolan): Promise<NowView> {
  const { body } = await server.page("console", "/api/v1/now");
  return JSON.parse(body) as NowView;
}

export async function consoleConfiguration(server: Portolan): Promise<ConfigurationAnswer> {
  const { body } = await server.page("console", "/api/v1/configuration");
  return JSON.parse(body) as ConfigurationAnswer;
}

/** The faults that the console shows, a line each: `PLUGIN SUBJECT: REASON`. */
export async function troublesOf(server: Portolan): Promise<string> {
  const { troubles } = await consoleNow(server);
  return troubles.map(({ plugin, subject, reason }) => `${plugin} ${subject}: ${reason}`).join("\n");
}
