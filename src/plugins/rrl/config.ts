/** The words and defaults of github.com/coredns/rrl. */
import type { Allowance } from "../../lib/collections/bucket-table.ts";
import type { Argument } from "../../plugin/config/arguments.ts";
import {
  directive,
  flag,
  integer,
  single,
  type Value,
  ValueProblem,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";

/** 20 bytes each. */
const MOST_BUCKETS = 1_600_000;
const SECOND = 1_000;

function amount(isValid: (value: number) => boolean, problem: string): Value<number> {
  return {
    expected: "a number such as 10 or 0.5",
    parse(word) {
      const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(word) ? Number(word) : Number.NaN;
      if (Number.isNaN(value)) return new ValueProblem(`${word} invalid value`);
      return isValid(value) ? value : new ValueProblem(problem.replace("%v", word));
    },
  };
}

const allowance = amount((value) => value >= 0, "%v cannot be negative");
const prefixLength = (most: number): Value<number> =>
  integer({ min: 1, max: most, problem: (word) => `${word} must be between 1 and ${most}` });

/** `rrl {}` is valid: the plugin skips words with a brace. */
const zonesWithoutBraces: Argument<ZoneList> = {
  read(cursor, label) {
    while (cursor.peek()?.text.includes("{") === true) cursor.take();
    return zones().read(cursor, label);
  },
  usage: (label) => zones().usage(label),
};

export const rrlDirective = directive({
  args: { zones: zonesWithoutBraces },
  options: {
    window: single(
      amount((value) => value > 0, "window must be greater than zero"),
      15,
    ),
    "ipv4-prefix-length": single(prefixLength(32), 24),
    "ipv6-prefix-length": single(prefixLength(128), 56),
    "responses-per-second": single(allowance, 0),
    "nodata-per-second": single(allowance),
    "nxdomains-per-second": single(allowance),
    "referrals-per-second": single(allowance),
    "errors-per-second": single(allowance),
    "requests-per-second": single(allowance, 0),
    "slip-ratio": single(integer({ min: 0 }), 0),
    "max-table-size": single(
      integer({
        min: 0,
        problem: (word) => (word.startsWith("-") ? `${word} cannot be negative` : `${word} invalid value`),
      }),
      100_000,
    ),
    "report-only": flag(),
  },
  occurrences: "first",
});

type Parsed<S> = S extends { parse(...args: never[]): readonly (infer T)[] | undefined } ? T : never;
export type RrlConfig = Parsed<typeof rrlDirective>;

export interface RrlSettings {
  readonly zones: ZoneList;
  readonly networks: { readonly ipv4: number; readonly ipv6: number };
  /** `undefined` for no limit. */
  readonly requests: Allowance | undefined;
  readonly responses: Allowance | undefined;
  readonly nodata: Allowance | undefined;
  readonly nxdomains: Allowance | undefined;
  readonly referrals: Allowance | undefined;
  readonly errors: Allowance | undefined;
  readonly slipRatio: number;
  readonly tableSize: number;
  readonly reportOnly: boolean;
}

export function settingsOf(config: RrlConfig): RrlSettings {
  const perSecond = config["responses-per-second"];
  const size = config["max-table-size"];
  const debt = config.window * SECOND;
  const allowanceOf = (rate: number): Allowance | undefined => {
    // A table without room for any response tracks none.
    if (rate === 0 || size === 0) return undefined;
    const interval = SECOND / rate;
    return { interval, burst: Math.max(SECOND, interval), debt };
  };
  return {
    zones: config.zones,
    networks: { ipv4: config["ipv4-prefix-length"], ipv6: config["ipv6-prefix-length"] },
    requests: allowanceOf(config["requests-per-second"]),
    responses: allowanceOf(perSecond),
    nodata: allowanceOf(config["nodata-per-second"] ?? perSecond),
    nxdomains: allowanceOf(config["nxdomains-per-second"] ?? perSecond),
    referrals: allowanceOf(config["referrals-per-second"] ?? perSecond),
    errors: allowanceOf(config["errors-per-second"] ?? perSecond),
    slipRatio: config["slip-ratio"],
    tableSize: Math.min(Math.max(size, 1), MOST_BUCKETS),
    reportOnly: config["report-only"],
  };
}
