import { TODAY } from "../../predecessors/migrate/versions.ts";
import { FlagError, type FlagRow, switchRow } from "../flag-table.ts";

export const MIGRATE_VERBS = [
  "migrate",
  "downgrade",
  "deprecated",
  "unsupported",
  "default",
  "released",
  "validversions",
] as const;
export type MigrateVerb = (typeof MIGRATE_VERBS)[number];

export interface MigrateFlags {
  from: string;
  to: string;
  corefile: string;
  configmap: string;
  kubeconfig: string;
  k8sversion: string;
  domain: string;
  deprecations: boolean;
  wildcards: boolean;
  toValues: boolean;
  format: string;
  help: boolean;
}

export function defaultMigrateFlags(): MigrateFlags {
  return {
    from: "",
    to: TODAY,
    corefile: "",
    configmap: "",
    kubeconfig: "",
    k8sversion: "",
    domain: "cluster.local",
    deprecations: false,
    wildcards: false,
    toValues: false,
    format: "human",
    help: false,
  };
}

const FORMATS = ["human", "json"];

export const MIGRATE_FLAGS: readonly FlagRow<MigrateFlags>[] = [
  textRow(
    "from",
    "VERSION",
    "version of CoreDNS that the Corefile is for, or kube-dns or helm-values",
    (flags, value) => {
      flags.from = value;
    },
  ),
  textRow("to", "VERSION", `version of CoreDNS to migrate to (default ${TODAY})`, (flags, value) => {
    flags.to = value;
  }),
  textRow("corefile", "FILE", "the file to migrate, like the word after the flags", (flags, value) => {
    flags.corefile = value;
  }),
  textRow(
    "configmap",
    "NAMESPACE/NAME",
    "read this ConfigMap of the cluster instead of a file",
    (flags, value) => {
      flags.configmap = value;
    },
  ),
  textRow("kubeconfig", "FILE", "where the cluster is (default: the cluster of this pod)", (flags, value) => {
    flags.kubeconfig = value;
  }),
  textRow("k8sversion", "VERSION", "release of Kubernetes to compare with (verb default)", (flags, value) => {
    flags.k8sversion = value;
  }),
  textRow("domain", "ZONE", "zone of the cluster for kube-dns (default cluster.local)", (flags, value) => {
    flags.domain = value.replace(/\.$/, "");
  }),
  switchRow(["deprecations"], "also replace options that are deprecated in that version", (flags, on) => {
    flags.deprecations = on;
  }),
  switchRow(["wildcards"], "keep the wildcard labels of kube-dns working", (flags, on) => {
    flags.wildcards = on;
  }),
  switchRow(
    ["to-values"],
    "write values for Portolan's Helm chart from those of CoreDNS's chart",
    (flags, on) => {
      flags.toValues = on;
    },
  ),
  {
    names: ["format"],
    value: "FORMAT",
    about: "human or json (default human)",
    choices: FORMATS,
    apply: (flags, value) => {
      if (!FORMATS.includes(value))
        throw new FlagError(`unknown format "${value}": ${FORMATS.join(", ")}`, 2, true);
      flags.format = value;
    },
  },
  switchRow(["help", "h"], "show this help", (flags, on) => {
    flags.help = on;
  }),
];

function textRow(
  name: string,
  value: string,
  about: string,
  apply: (flags: MigrateFlags, value: string) => void,
): FlagRow<MigrateFlags> {
  return { names: [name], value, about, apply };
}
