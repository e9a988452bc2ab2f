/** What is wrong in zone text, and where. */

export interface ZoneTextFault {
  /** As named by who asked for the text, or by `$INCLUDE`. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** Octets of the line, counted from 1. */
  readonly column: number;
  readonly reason: string;
  /** A warning leaves the zone fit to be served. */
  readonly severity: "error" | "warning";
}

/** `db.example:3:7: not an IPv4 address: "x"`: the form that editors and compilers know. */
export function formatZoneTextFault({ file, line, column, reason, severity }: ZoneTextFault): string {
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return `${place}: ${severity === "warning" ? "warning: " : ""}${reason}`;
}

/** Faults of one reading. What comes after the first hundred is only counted: a file of another kind is all faults. An error takes the place of a warning. */
export class ZoneTextFaults {
  readonly #kept: ZoneTextFault[] = [];
  #errors = 0;
  #warnings = 0;

  add(fault: ZoneTextFault): void {
    if (fault.severity === "error") this.#errors++;
    else this.#warnings++;
    if (this.#kept.length === MAX_KEPT) {
      if (fault.severity === "warning") return;
      const warning = this.#kept.findLastIndex(({ severity }) => severity === "warning");
      if (warning < 0) return;
      this.#kept.splice(warning, 1);
    }
    this.#kept.push(fault);
  }

  get list(): readonly ZoneTextFault[] {
    return this.#kept;
  }

  get errors(): number {
    return this.#errors;
  }

  get warnings(): number {
    return this.#warnings;
  }
}

const MAX_KEPT = 100;
