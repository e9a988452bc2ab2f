import { totalmem } from "node:os";

/** MiB of each half of the young generation: what `src/runtime/heap-bounds.ts` lets it grow to. */
const HALF = 2;
/** Octets. Where a process may have no more, V8 (13.6) holds each half to 1 MiB, and to 16 and more above. */
const LITTLE = 512 * 1024 * 1024;
const HALF_GIVEN = /--(?:min|max)[-_]semi[-_]space[-_]size\b/;

/** Commands that answer queries for as long as they run. */
const SERVING = ["dnsmasq-nanny", "istio-coredns", "kube-dns", "node-cache"];

/**
 * Arguments that Node needs beside its own to serve where memory is short. V8 sets the bound of its young generation by that memory, for good, before anything
 * runs. With halves of 1 MiB collections are twice as many, and queries take up to a tenth more CPU.
 * @param {readonly string[]} argv the arguments of the program
 * @param {{ memory: number, given: readonly string[] }} node octets that the process may have, and the options that Node was started with
 * @returns {string[]}
 */
export function heapArguments(argv, { memory, given }) {
  if (!serves(argv) || memory > LITTLE || given.some((option) => HALF_GIVEN.test(option))) return [];
  return [`--max-semi-space-size=${HALF}`];
}

/**
 * Whether these arguments start the server, or a command that answers queries.
 * @param {readonly string[]} argv
 */
export function serves(argv) {
  return isServer(argv) || SERVING.includes(argv[0] ?? "");
}

/**
 * Whether these arguments start the server, and no command.
 * @param {readonly string[]} argv
 */
export function isServer(argv) {
  return !/^[a-z]/i.test(argv[0] ?? "");
}

/**
 * `PORTOLAN_RUNTIME=plain`: no flag of V8 is set (`src/runtime/README.md`).
 * @param {NodeJS.ProcessEnv} environment
 */
export function isPlain(environment) {
  return environment.PORTOLAN_RUNTIME === "plain";
}

/** Octets, as V8 is told: those of the machine, or what its control group leaves to this process. */
export function availableMemory() {
  // Nothing where that is not known.
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}
