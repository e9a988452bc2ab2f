/** A chart of the last hour, with a text alternative for screen readers. */
import { clock } from "./format.ts";

export interface Line {
  readonly name: string;
  /** `null` for a missing value. */
  readonly values: readonly (number | null)[];
  /** 1 to 3: a colour of the style sheet. */
  readonly colour: 1 | 2 | 3;
}

export interface ChartProps {
  readonly title: string;
  readonly lines: readonly Line[];
  /** Of the vertical axis; empty if `format` names it. */
  readonly unit: string;
  /** Seconds between two values. */
  readonly step: number;
  /** When each value began, in milliseconds of the Unix epoch. */
  readonly times: readonly number[];
  readonly format: (value: number) => string;
}

/** Size of the drawing, in units of less than a pixel: whole numbers are exact enough, and short. */
const WIDTH = 1440;
const HEIGHT = 240;
/** Distance of the lines from the upper and lower edge: half of a line's width. */
const EDGE = 6;
/** Length of a value without neighbours. */
const DASH = 14;

export function Chart({ title, unit, lines, step, times, format }: ChartProps) {
  const most = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const length = Math.max(1, ...lines.map(({ values }) => values.length));
  const minutes = Math.round((length * step) / 60);
  const summary = lines
    .map(({ name, values }) => {
      const known = values.filter((value) => value !== null);
      const latest = known.at(-1);
      return latest === undefined
        ? `${name}: nothing`
        : `${name}: ${format(latest)} now, peak ${format(Math.max(...known))}`;
    })
    .join("; ");
  const axis = (value: number): string => `${format(value)}${unit === "" ? "" : ` ${unit}`}`;
  /** The values at the pointer, in place of the scale. The text is not drawn by the components. */
  const point = (event: PointerEvent): void => {
    const area = event.currentTarget;
    if (!(area instanceof HTMLElement)) return;
    const { left, width } = area.getBoundingClientRect();
    const at = Math.min(length - 1, Math.max(0, Math.round(((event.clientX - left) / width) * (length - 1))));
    const cursor = area.querySelector<HTMLElement>(".cursor");
    const readout = area.parentElement?.querySelector(".readout");
    const time = times[at];
    if (cursor === null || readout === undefined || readout === null || time === undefined) return;
    cursor.style.left = `${length === 1 ? 100 : (100 * at) / (length - 1)}%`;
    const values = lines.map(({ name, values: [...all] }) => `${name} ${format(all[at] ?? 0)}`);
    readout.textContent = `${clock(time)}: ${values.join(", ")}`;
    area.parentElement?.classList.add("pointed");
  };
  const leave = (event: PointerEvent): void => {
    if (event.currentTarget instanceof HTMLElement)
      event.currentTarget.parentElement?.classList.remove("pointed");
  };
  return (
    <figure class="chart">
      <figcaption>
        <h2>{title}</h2>
        <ul class="legend">
          {lines.map(({ name, colour }) => (
            <li key={name} class={`colour-${colour}`}>
              {name}
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="plot" onPointerMove={point} onPointerLeave={leave}>
        <span class="tick">{axis(most)}</span>
        <span class="tick half">{axis(most / 2)}</span>
        <span class="cursor"></span>
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`${title}. ${summary}`}
        >
          <line class="grid" x1="0" x2={WIDTH} y1={HEIGHT / 2} y2={HEIGHT / 2} />
          {lines.map(({ name, values, colour }) => (
            <path key={name} class={`line colour-${colour}`} d={pathOf(values, length, most)} />
          ))}
        </svg>
      </div>
      <p class="scale">
        <span>{minutes < 1 ? "a moment ago" : `${minutes} min ago`}</span>
        <span class="readout" aria-hidden="true"></span>
        <span>now</span>
      </p>
    </figure>
  );
}

function pathOf(values: readonly (number | null)[], length: number, most: number): string {
  let path = "";
  let isDown = false;
  let [penX, penY] = [0, 0];
  /** Length of the current horizontal run, not yet written. */
  let level = 0;
  for (const [index, value] of values.entries()) {
    if (value === null) {
      isDown = false;
      continue;
    }
    const x = Math.round((length === 1 ? 1 : index / (length - 1)) * WIDTH);
    const y = Math.round(HEIGHT - EDGE - (most === 0 ? 0 : value / most) * (HEIGHT - 2 * EDGE));
    if (isDown && y === penY) level += x - penX;
    else {
      if (level > 0) path += `h${level}`;
      level = 0;
      if (isDown) path += `l${x - penX}${y < penY ? "" : " "}${y - penY}`;
      else if ((values[index + 1] ?? null) !== null) path += `M${x} ${y}`;
      else path += `M${Math.min(Math.max(0, x - DASH / 2), WIDTH - DASH)} ${y}h${DASH}`;
    }
    [penX, penY] = [x, y];
    isDown = true;
  }
  return level > 0 ? `${path}h${level}` : path;
}
