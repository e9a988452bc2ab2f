/**
 * The Corefiles that installers of Kubernetes wrote. A cluster that still has one of them is unmodified
 * (docs/spec/kube-dns.md#installers).
 */
import { memoryHost } from "../../corefile/host.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import type { Corefile, Directive } from "../../corefile/tree.ts";

/** `*` stands for one word, `***` for all that follow. */
interface DefaultCorefile {
  /** Releases of Kubernetes. */
  readonly releases: readonly string[];
  readonly lines: readonly string[];
}

const KUBERNETES = (...options: readonly string[]) =>
  `kubernetes * *** {\n pods insecure\n fallthrough in-addr.arpa ip6.arpa\n ${options.join("\n ")}\n}`;
const HEALTH = "health {\n lameduck 5s\n}";
const FORWARD = "forward . *";
const BOUNDED_FORWARD = "forward . * {\n max_concurrent 1000\n}";
const TAIL = ["loop", "reload", "loadbalance"];

const DEFAULTS: readonly DefaultCorefile[] = [
  {
    releases: ["1.11"],
    lines: [
      "errors",
      "health",
      KUBERNETES("upstream"),
      "prometheus :9153",
      "proxy . *",
      "cache 30",
      "reload",
    ],
  },
  {
    releases: ["1.12", "1.13"],
    lines: ["errors", "health", KUBERNETES("upstream"), "prometheus :9153", "proxy . *", "cache 30", ...TAIL],
  },
  {
    releases: ["1.14", "1.15"],
    lines: [
      "errors",
      "health",
      KUBERNETES("upstream", "ttl 30"),
      "prometheus :9153",
      FORWARD,
      "cache 30",
      ...TAIL,
    ],
  },
  {
    releases: ["1.16"],
    lines: [
      "errors",
      "health",
      "ready",
      KUBERNETES("ttl 30"),
      "prometheus :9153",
      FORWARD,
      "cache 30",
      ...TAIL,
    ],
  },
  {
    releases: ["1.17", "1.18"],
    lines: [
      "errors",
      HEALTH,
      "ready",
      KUBERNETES("ttl 30"),
      "prometheus :9153",
      FORWARD,
      "cache 30",
      ...TAIL,
    ],
  },
  {
    releases: ["1.19", "1.20"],
    lines: [
      "errors",
      HEALTH,
      "ready",
      KUBERNETES("ttl 30"),
      "prometheus :9153",
      BOUNDED_FORWARD,
      "cache 30",
      ...TAIL,
    ],
  },
  {
    releases: [],
    lines: [
      "errors",
      HEALTH,
      "ready",
      KUBERNETES("ttl 30"),
      "prometheus :9153",
      BOUNDED_FORWARD,
      "cache 30 {\n disable success *\n disable denial *\n}",
      ...TAIL,
    ],
  },
];

/**
 * Whether a Corefile is the default of a release of Kubernetes, or of any.
 * @param release such as `1.16`; without it every default counts
 */
export function isDefaultCorefile(corefile: Corefile, release?: string): boolean {
  const minor = release === undefined ? undefined : /^v?(\d+\.\d+)/.exec(release)?.[1];
  return DEFAULTS.some(({ releases, lines }) => {
    // The last default applies to all later releases.
    if (minor !== undefined && !(releases.length === 0 ? isLaterThanListed(minor) : releases.includes(minor)))
      return false;
    const text = `.:53 {\n${lines.join("\n")}\n}\n`;
    const { corefile: pattern } = parseCorefile(text, { file: "default", host: memoryHost() });
    return (
      corefile.globalOptions.length === 0 &&
      corefile.blocks.length === 1 &&
      corefile.blocks.every(
        (block, index) =>
          block.keys.map(({ text: key }) => key).join() === ".:53" &&
          sameLines(pattern.blocks[index]?.directives ?? [], block.directives),
      )
    );
  });
}

function isLaterThanListed(minor: string): boolean {
  const number = Number(minor.split(".")[1]);
  return number > 20;
}

/** The order of lines does not matter. */
function sameLines(patterns: readonly Directive[], lines: readonly Directive[]): boolean {
  if (patterns.length !== lines.length) return false;
  const left = [...lines];
  return patterns.every((pattern) => {
    const index = left.findIndex((candidate) => fits(pattern, candidate));
    if (index < 0) return false;
    left.splice(index, 1);
    return true;
  });
}

function fits(pattern: Directive, candidate: Directive): boolean {
  return (
    pattern.name.text === candidate.name.text &&
    sameWords(
      pattern.args.map(({ text }) => text),
      candidate.args.map(({ text }) => text),
    ) &&
    sameLines(pattern.block ?? [], candidate.block ?? [])
  );
}

function sameWords(patterns: readonly string[], words: readonly string[]): boolean {
  const rest = patterns.indexOf("***");
  if (rest < 0 && patterns.length !== words.length) return false;
  return patterns.slice(0, rest < 0 ? undefined : rest).every((pattern, index) => {
    const word = words[index];
    return word !== undefined && (pattern === "*" || pattern === word);
  });
}
