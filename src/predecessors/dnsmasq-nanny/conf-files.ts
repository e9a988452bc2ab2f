/** Reads options from files: `--conf-file` and `--conf-dir` of dnsmasq. */
import { messageOf } from "../../lib/text/message-of.ts";
import { DnsmasqArgumentError } from "./dnsmasq-arguments.ts";

export interface FolderReader {
  /** @throws the reason in words */
  readText(path: string): Promise<string>;
  /** Lists file names. @throws the reason in words */
  list(folder: string): Promise<readonly string[]>;
}

/** Files within files. */
const MAX_DEPTH = 8;

/**
 * Replaces the options that name files by the content of the files.
 * @throws DnsmasqArgumentError
 */
export async function withConfFiles(
  words: readonly string[],
  reader: FolderReader,
  depth = 0,
): Promise<readonly string[]> {
  const all: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    const [, name, given] = /^(?:--(conf-file|conf-dir)(?:=(.*))?|-C(.+)?)$/s.exec(word) ?? [];
    if (name === undefined && !word.startsWith("-C")) {
      all.push(word);
      continue;
    }
    const next = words[index + 1];
    const attached = given ?? (/^-C./s.test(word) ? word.slice(2) : undefined);
    // `--conf-file` without a file means no file.
    const value = attached ?? (next?.startsWith("-") === false ? next : "");
    if (attached === undefined && value !== "") index++;
    if (value === "") continue;
    if (depth >= MAX_DEPTH)
      throw new DnsmasqArgumentError(`dnsmasq: files are nested too deeply at ${value}`);
    const files = name === "conf-dir" ? await filesOf(value, reader) : [value];
    for (const file of files) {
      const text = await reader.readText(file).catch((error: unknown) => {
        throw new DnsmasqArgumentError(`dnsmasq: cannot read ${file}: ${reasonOf(error)}`);
      });
      all.push(...(await withConfFiles(optionsOf(text, file), reader, depth + 1)));
    }
  }
  return all;
}

/** `FOLDER,.ext,…` leaves out files with these endings, `*.ext` takes only those. */
async function filesOf(value: string, reader: FolderReader): Promise<string[]> {
  const [folder = "", ...endings] = value.split(",");
  const names = await reader.list(folder).catch((error: unknown) => {
    throw new DnsmasqArgumentError(`dnsmasq: cannot access directory ${folder}: ${reasonOf(error)}`);
  });
  const wanted = endings.filter((each) => each.startsWith("*")).map((each) => each.slice(1));
  const unwanted = endings.filter((each) => !each.startsWith("*"));
  return names
    .filter((name) => !/^[.#]|[~#]$/.test(name) && !unwanted.some((ending) => name.endsWith(ending)))
    .filter((name) => wanted.length === 0 || wanted.some((ending) => name.endsWith(ending)))
    .toSorted()
    .map((name) => `${folder.replace(/\/$/, "")}/${name}`);
}

function optionsOf(text: string, file: string): string[] {
  return text.split("\n").flatMap((line, index) => {
    const bare = line.replace(/(^|\s)#.*$/, "").trim();
    if (bare === "") return [];
    const [, name, value] = /^([a-z0-9-]+)(?:\s*=\s*(.*))?$/s.exec(bare) ?? [];
    if (name === undefined)
      throw new DnsmasqArgumentError(`dnsmasq: bad option at line ${index + 1} of ${file}`);
    return [value === undefined ? `--${name}` : `--${name}=${value.replace(/^"(.*)"$/, "$1")}`];
  });
}

function reasonOf(error: unknown): string {
  return messageOf(error);
}
