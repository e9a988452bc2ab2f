/** Replaces sources of a Corefile with the fixtures of a test file: manifests, a hosts file, upstreams. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Directive } from "../../corefile/tree.ts";
import { MAX_FILE_SIZE } from "../../kubernetes/manifests/manifest-source.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import type { ConfiguredBlock } from "../../server/configuration/configuration.ts";
import {
  type Substitute,
  withArguments,
  withLines,
} from "../../server/configuration/directive-substitutes.ts";
import { faultOfFile } from "../readable-file.ts";
import { FakeUpstreams, normalized } from "./fake-upstreams.ts";
import { type Fixtures, type TestFile, TestFileError } from "./test-file.ts";

const MANIFESTS = { maxMebibytes: MAX_FILE_SIZE / 1024 / 1024, orFolder: true };

/** Whether a value is a text and not a path. */
export function isInline(text: string): boolean {
  return text.includes("\n") || text.includes("{");
}

export class FixtureFiles {
  readonly upstreams: FakeUpstreams;
  readonly #folder: string;
  readonly #manifests: readonly string[] | undefined;
  readonly #hosts: string | undefined;

  private constructor(folder: string, fixtures: Fixtures, base: string, upstreams: FakeUpstreams) {
    this.#folder = folder;
    this.upstreams = upstreams;
    this.#manifests = fixtures.manifests?.map((text, index) => {
      if (!isInline(text)) return resolve(base, text);
      return writtenTo(join(folder, `manifests-${index}.yaml`), text);
    });
    this.#hosts = fixtures.hosts === undefined ? undefined : writtenTo(join(folder, "hosts"), fixtures.hosts);
  }

  /**
   * Writes the files and opens the upstreams.
   * @param blocks of the Corefile, as written
   * @throws TestFileError if the Corefile has no use for a fixture, or a fixture is missing
   */
  static async open({ file, fixtures }: TestFile, blocks: readonly ConfiguredBlock[]): Promise<FixtureFiles> {
    const directives = blocks.flatMap((block) => block.directives);
    const named = (name: string): Directive[] =>
      directives.filter((directive) => directive.name.text === name);
    const words = named("forward").flatMap(targetsOf);
    checkUse(file, fixtures, named, words);
    const upstreams = await FakeUpstreams.open(words, fixtures.upstreams);
    const folder = mkdtempSync(join(tmpdir(), "portolan-test-"));
    return new FixtureFiles(folder, fixtures, dirname(file), upstreams);
  }

  /** Replacements for the reader of the Corefile. */
  get substitutes(): ReadonlyMap<string, Substitute> {
    const [manifests, hosts] = [this.#manifests, this.#hosts];
    return new Map<string, Substitute>([
      [
        "forward",
        (directive) => {
          const [from, ...to] = directive.args.map(({ text }) => text);
          if (from === undefined) return directive;
          return withArguments(directive, [from, ...to.map((word) => this.upstreams.substitute(word))]);
        },
      ],
      [
        "kubernetes",
        (directive) =>
          manifests === undefined ? directive : withLines(directive, SOURCES, [["manifests", ...manifests]]),
      ],
      [
        "hosts",
        (directive) => {
          if (hosts === undefined) return directive;
          return withArguments(directive, [hosts, ...directive.args.slice(1).map(({ text }) => text)]);
        },
      ],
    ]);
  }

  async close(): Promise<void> {
    await this.upstreams.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Options of `kubernetes` that select the cluster. */
const SOURCES = ["manifests", "endpoint", "tls", "kubeconfig"];

/** The TO words of a `forward` that a fake upstream can replace. Words with another scheme stay, and are refused later. */
function targetsOf({ args }: Directive): string[] {
  const words = args.slice(1).map(({ text }) => text);
  return words.filter((word) => !/^[a-z0-9+.-]+:\/\//i.test(word) || /^dns:\/\//i.test(word));
}

function checkUse(
  file: string,
  { manifests, hosts, upstreams }: Fixtures,
  named: (name: string) => readonly Directive[],
  words: readonly string[],
): void {
  const faults: string[] = [];
  if (manifests !== undefined && named("kubernetes").length === 0)
    faults.push("fixtures.manifests: the Corefile has no kubernetes directive");
  for (const text of manifests ?? []) {
    if (isInline(text)) continue;
    const reason = faultOfFile(resolve(dirname(file), text), MANIFESTS);
    if (reason !== undefined) faults.push(`fixtures.manifests: cannot read ${text}: ${reason}`);
  }
  if (hosts !== undefined && named("hosts").length === 0)
    faults.push("fixtures.hosts: the Corefile has no hosts directive");
  const isLive = ({ block }: Directive): boolean => !block?.some(({ name }) => name.text === "manifests");
  if (manifests === undefined && named("kubernetes").some(isLive))
    faults.push(
      "the kubernetes directive asks a live cluster, which a test must not: give fixtures.manifests",
    );
  const known = words.map(normalized);
  for (const word of upstreams.keys()) {
    if (word === "*" || known.includes(normalized(word))) continue;
    const near = nearestWord(word, words);
    const hint =
      near === undefined
        ? words.length === 0
          ? "it forwards nowhere"
          : `they are ${words.join(", ")}`
        : `did you mean ${near}?`;
    faults.push(`fixtures.upstreams: no forward of the Corefile sends queries to ${word}; ${hint}`);
  }
  if (faults.length > 0) throw new TestFileError(faults.map((fault) => `${file}: ${fault}`).join("\n"));
}

function writtenTo(path: string, text: string): string {
  writeFileSync(path, text);
  return path;
}
