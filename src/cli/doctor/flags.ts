import { choiceRow, type FlagRow, helpRow, switchRow, valueRow } from "../flag-table.ts";
import { defaultServerFlags, type LiveServerFlags, parseTime, serverRows } from "../live/server-flags.ts";

export const FORMATS = ["human", "json"] as const;
export type DoctorFormat = (typeof FORMATS)[number];

export interface DoctorFlags extends LiveServerFlags {
  format: DoctorFormat;
  /** Milliseconds of listening. */
  duration: number;
  /** File to write the capture to; empty for none. */
  record: string;
  /** The manifest of the server's pod; `-` is standard input. */
  manifest: string;
  /** Whether to query a name that cannot exist. */
  probe: boolean;
  help: boolean;
}

export function defaultDoctorFlags(): DoctorFlags {
  return {
    ...defaultServerFlags(),
    format: "human",
    duration: 10_000,
    record: "",
    manifest: "",
    probe: true,
    help: false,
  };
}

export const DOCTOR_FLAGS: readonly FlagRow<DoctorFlags>[] = [
  ...serverRows<DoctorFlags>(),
  valueRow("for", "TIME", "time to listen, such as 30s or 5m (default 10s)", (flags, value) => {
    flags.duration = parseTime("for", value);
  }),
  valueRow(
    "manifest",
    "FILE",
    "Deployment, DaemonSet or Pod of the server, to check its probes and limits; - is standard input",
    (flags, value) => {
      flags.manifest = value;
    },
  ),
  valueRow(
    "record",
    "FILE",
    "write the observations to a file, to analyse later with: portolan doctor FILE",
    (flags, value) => {
      flags.record = value;
    },
  ),
  choiceRow("format", FORMATS, "human or json (default human)", (flags, value) => {
    flags.format = value;
  }),
  switchRow(["probe"], "ask upstreams for a name that cannot exist (default true)", (flags, on) => {
    flags.probe = on;
  }),
  helpRow(),
];
