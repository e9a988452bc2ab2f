/** Whether to colour what is printed: only for people, and not for those who do not want it (no-color.org). */
export function wantsColour(stream: { readonly isTTY?: boolean }, environment: NodeJS.ProcessEnv): boolean {
  if ((environment.NO_COLOR ?? "") !== "" || environment.TERM === "dumb") return false;
  return stream.isTTY === true;
}

export type Colour = "red" | "yellow" | "cyan" | "bold";

const CODES: Readonly<Record<Colour, readonly [number, number]>> = {
  red: [31, 39],
  yellow: [33, 39],
  cyan: [36, 39],
  bold: [1, 22],
};

export function paint(text: string, colour: Colour): string {
  const [on, off] = CODES[colour];
  return `\u001b[${on}m${text}\u001b[${off}m`;
}
