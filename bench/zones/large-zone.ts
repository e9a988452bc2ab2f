/** A zone of any size, and questions for it. */
import { closeSync, openSync, writeSync } from "node:fs";

export const ZONE = "example.org";
/** Questions in a list: more than fit into the caches of a processor. */
const QUESTIONS = 200_000;
/** One query in this many is for a name that does not exist. */
const MISSING_EVERY = 10;
const LINES_AT_ONCE = 10_000;

/** @param records with the SOA and NS record, and the address of the name server */
export function writeZone(file: string, records: number): void {
  const head = [
    `$ORIGIN ${ZONE}.`,
    "$TTL 3600",
    "@ SOA ns hostmaster 1 3600 900 86400 300",
    "@ NS ns",
    "ns A 192.0.2.53",
  ];
  writeLines(file, records - 3, (index) => `${label(index)} A ${address(index)}`, head);
}

export function writeQuestions(file: string, records: number): void {
  // A multiplier without common divisors with the number of names goes through them in an order that no processor foresees.
  writeLines(file, QUESTIONS, (index) => {
    const name = label((index * 7_368_787) % (records - 3));
    return `${index % MISSING_EVERY === 0 ? `no-${name}` : name}.${ZONE} A`;
  });
}

/** A name that is read last. */
export function lastName(records: number): string {
  return `${label(records - 4)}.${ZONE}.`;
}

const label = (index: number): string => `host-${index.toString(36)}`;
const address = (index: number): string => `10.${index >>> 16}.${(index >>> 8) & 255}.${index & 255}`;

function writeLines(
  file: string,
  count: number,
  line: (index: number) => string,
  head: readonly string[] = [],
): void {
  const target = openSync(file, "w");
  try {
    let lines = [...head];
    for (let index = 0; index < count; index++) {
      lines.push(line(index));
      if (lines.length < LINES_AT_ONCE) continue;
      writeSync(target, `${lines.join("\n")}\n`);
      lines = [];
    }
    if (lines.length > 0) writeSync(target, `${lines.join("\n")}\n`);
  } finally {
    closeSync(target);
  }
}
