/** Formats numbers and times. */

export function count(value: number): string {
  if (value >= 1e6) return `${(value / 1e6).toFixed(value >= 1e7 ? 0 : 1)} M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(value >= 1e5 ? 0 : 1)} k`;
  return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 1 : 0);
}

export function milliseconds(value: number | null): string {
  if (value === null) return "–";
  if (value < 1) return `${Math.round(value * 1000)} µs`;
  if (value < 1000) return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
  return `${(value / 1000).toFixed(1)} s`;
}

export function share(value: number | null): string {
  return value === null ? "–" : `${(value * 100).toFixed(value > 0 && value < 0.1 ? 1 : 0)} %`;
}

export function octets(value: number): string {
  if (value >= 2 ** 30) return `${(value / 2 ** 30).toFixed(1)} GiB`;
  if (value >= 2 ** 20) return `${(value / 2 ** 20).toFixed(value >= 2 ** 24 ? 0 : 1)} MiB`;
  return `${Math.round(value / 2 ** 10)} KiB`;
}

/** A duration. */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

export function clock(time: number, withFraction = false): string {
  const date = new Date(time);
  const text = date.toLocaleTimeString("en-GB");
  return withFraction ? `${text}.${String(date.getMilliseconds()).padStart(3, "0")}` : text;
}

export function dateAndTime(time: number): string {
  return time === 0 ? "–" : new Date(time).toLocaleString("en-GB");
}
