import { parseGoDuration } from "../../lib/duration.ts";
import { FlagError, type FlagRow, switchRow } from "../flag-table.ts";

export const FORMATS = ["human", "json"] as const;
export type Format = (typeof FORMATS)[number];

export interface DoctorFlags {
  server: string;
  tokenFile: string;
  format: Format;
  /** Milliseconds for which the server is listened to. */
  duration: number;
  /** Where the capture is written to; empty for nowhere. */
  record: string;
  /** The manifest that makes the server's pod; `-` is standard input. */
  manifest: string;
  /** Whether a name that cannot exist is asked for. */
  probe: boolean;
  help: boolean;
}

export function defaultDoctorFlags(): DoctorFlags {
  return {
    server: "127.0.0.1:8184",
    tokenFile: "",
    format: "human",
    duration: 10_000,
    record: "",
    manifest: "",
    probe: true,
    help: false,
  };
}

const LONGEST = 3_600_000;

export const DOCTOR_FLAGS: readonly FlagRow<DoctorFlags>[] = [
  {
    names: ["server"],
    value: "ADDR",
    about: "address of the server's directive console (default: 127.0.0.1:8184)",
    apply: (flags, value) => {
      flags.server = value;
    },
  },
  {
    names: ["token-file"],
    value: "FILE",
    about: "file with the token, if the console needs one",
    apply: (flags, value) => {
      flags.tokenFile = value;
    },
  },
  {
    names: ["for"],
    value: "TIME",
    about: "time to listen, such as 30s or 5m (default 10s)",
    apply: (flags, value) => {
      const duration = parseGoDuration(value);
      if (duration === undefined || duration < 0 || duration > LONGEST)
        throw new FlagError(`-for ${value}: not a duration up to 1h, such as 30s`, 2, true);
      flags.duration = duration;
    },
  },
  {
    names: ["manifest"],
    value: "FILE",
    about: "Deployment, DaemonSet or Pod of the server, to check its probes and limits; - is standard input",
    apply: (flags, value) => {
      flags.manifest = value;
    },
  },
  {
    names: ["record"],
    value: "FILE",
    about: "write the observations to a file, to analyse later with: portolan doctor FILE",
    apply: (flags, value) => {
      flags.record = value;
    },
  },
  {
    names: ["format"],
    value: "FORMAT",
    about: "human or json (default human)",
    choices: FORMATS,
    apply: (flags, value) => {
      const format = FORMATS.find((known) => known === value);
      if (format === undefined)
        throw new FlagError(`unknown format "${value}": ${FORMATS.join(", ")}`, 2, true);
      flags.format = format;
    },
  },
  switchRow(["probe"], "asks upstreams for a name that cannot exist (default true)", (flags, on) => {
    flags.probe = on;
  }),
  switchRow(["help", "h"], "show this help", (flags, on) => {
    flags.help = on;
  }),
];
