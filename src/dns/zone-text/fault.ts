/** A fault in zone text, and its place. */

export interface ZoneTextFault {
  /** As named by the caller, or by `$INCLUDE`. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** Octets of the line, counted from 1. */
  readonly column: number;
  readonly reason: string;
  /** With warnings only, the zone can be served. */
  readonly severity: "error" | "warning";
}

/** `db.example:3:7: not an IPv4 address: "x"`: the form of compilers, which editors recognize. */
export function formatZoneTextFault({ file, line, column, reason, severity }: ZoneTextFault): string {
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return `${place}: ${severity === "warning" ? "warning: " : ""}${reason}`;
}

/**
 * The faults of one file. After the first hundred they are only counted: a file of another kind has nothing but faults. An error
 * replaces a warning.
 */
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
