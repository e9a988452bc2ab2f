/** The commands of the program: what usage, completion and manual pages say of them, and where they are. */
import type { CommandEntry } from "./command-entry.ts";
import type { FlagDescription } from "./flag-table.ts";

/** The flags that `completion` and `plugin` have. */
const HELP_FLAG: readonly FlagDescription[] = [
  { names: ["help", "h"], value: undefined, about: "show this help" },
];

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: "check",
    words: "[COREFILE...]",
    about: "finds all faults without running it",
    wordKind: "files",
    load: async () => (await import("./check/check.ts")).check,
    flags: async () => (await import("./check/check.ts")).CHECK_FLAGS,
  },
  {
    name: "explain",
    words: "NAME [TYPE]",
    about: "shows the way of a query, and why",
    wordKind: "question",
    load: async () => (await import("./explain/explain.ts")).explain,
    flags: async () => (await import("./explain/flags.ts")).EXPLAIN_FLAGS,
  },
  {
    name: "test",
    words: "FILE...",
    about: "runs tests of a configuration",
    wordKind: "files",
    load: async () => (await import("./test-command/test-command.ts")).test,
    flags: async () => (await import("./test-command/test-command.ts")).TEST_FLAGS,
  },
  {
    name: "migrate",
    words: "[VERB] [FILE]",
    about: "rewrites old Corefiles, ConfigMaps and values",
    wordKind: "files",
    load: async () => (await import("./migrate/migrate.ts")).migrate,
    flags: async () => (await import("./migrate/flags.ts")).MIGRATE_FLAGS,
  },
  {
    name: "kube-dns",
    words: "[FLAGS]",
    about: "stands in for kube-dns",
    wordKind: "none",
    load: async () => (await import("./predecessors/kube-dns.ts")).kubeDns,
    flags: async () => (await import("./predecessors/kube-dns.ts")).KUBE_DNS_FLAGS,
  },
  {
    name: "node-cache",
    words: "-localip ADDRESSES [FLAGS]",
    about: "stands in for the DNS cache of a node",
    wordKind: "none",
    load: async () => (await import("./predecessors/node-cache.ts")).nodeCache,
    flags: async () => (await import("./predecessors/node-cache.ts")).NODE_CACHE_FLAGS,
  },
  {
    name: "kube2sky",
    words: "[FLAGS]",
    about: "writes SkyDNS's records for a cluster into etcd",
    wordKind: "none",
    load: async () => (await import("./predecessors/kube2sky.ts")).kube2sky,
    flags: async () => (await import("./predecessors/kube2sky.ts")).KUBE2SKY_FLAGS,
  },
  {
    name: "sidecar",
    words: "[FLAGS]",
    about: "stands in for kube-dns's sidecar",
    wordKind: "none",
    load: async () => (await import("./predecessors/sidecar.ts")).sidecar,
    flags: async () => (await import("./predecessors/sidecar.ts")).SIDECAR_FLAGS,
  },
  {
    name: "exechealthz",
    words: "[FLAGS]",
    about: "stands in for exechealthz",
    wordKind: "none",
    load: async () => (await import("./predecessors/exechealthz.ts")).exechealthz,
    flags: async () => (await import("./predecessors/exechealthz.ts")).EXECHEALTHZ_FLAGS,
  },
  {
    name: "help",
    words: "[PLUGIN]",
    about: "explains a plugin",
    wordKind: "plugin",
    load: async () => (await import("./help/help.ts")).help,
    flags: async () => (await import("./help/help.ts")).HELP_FLAGS,
  },
  {
    name: "zone",
    words: "check|print FILE | diff A B",
    about: "checks, prints and compares zone files",
    wordKind: "action",
    actions: ["check", "print", "diff"],
    load: async () => (await import("./zone/zone.ts")).zoneCommand,
    flags: async () => HELP_FLAG,
  },
  {
    name: "plugin",
    words: "new NAME | test [FILE...]",
    about: "begins a plugin of your own, runs its tests",
    wordKind: "action",
    actions: ["new", "test"],
    load: async () => (await import("./plugin-command/plugin-command.ts")).plugin,
    flags: async () => HELP_FLAG,
  },
  {
    name: "completion",
    words: "bash|zsh|fish",
    about: "prints what completes all this in a shell",
    wordKind: "shell",
    actions: ["bash", "zsh", "fish"],
    load: async () => (await import("./completion/completion.ts")).completion,
    flags: async () => HELP_FLAG,
  },
];
