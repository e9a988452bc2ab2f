/** Files with keys in the form of BIND: `key "name" { algorithm hmac-sha256; secret "base64"; };`. */
import {
  DEFAULT_TSIG_ALGORITHM,
  Name,
  TSIG_ALGORITHM_NAMES,
  type TsigAlgorithm,
  type TsigKey,
  tsigAlgorithm,
} from "../../dns/index.ts";
import { fromBase64 } from "../../dns/octets.ts";

/** A fault in a file, with its line. */
export class SecretsFileError extends Error {
  override readonly name = "SecretsFileError";
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

interface Word {
  readonly text: string;
  readonly line: number;
}

/** @throws SecretsFileError */
export function parseSecretsFile(text: string): TsigKey[] {
  const words = new Words(text);
  const keys: TsigKey[] = [];
  for (let word = words.next(); word !== undefined; word = words.next()) {
    if (word.text !== "key") throw new SecretsFileError(word.line, `expected 'key', found '${word.text}'`);
    keys.push(readKey(words, word.line));
  }
  return keys;
}

function readKey(words: Words, line: number): TsigKey {
  const nameWord = words.need("the name of the key");
  const name = Name.tryParse(nameWord.text)?.toLowerCase();
  if (name === undefined) throw new SecretsFileError(nameWord.line, `not a domain name: '${nameWord.text}'`);
  words.expect("{");
  let algorithm: Strength = { algorithm: DEFAULT_TSIG_ALGORITHM };
  let secret: Uint8Array | undefined;
  for (let word = words.need("'}'"); word.text !== "}"; word = words.need("'}'")) {
    const value = words.need(`a value after '${word.text}'`);
    if (word.text === "algorithm") algorithm = readAlgorithm(value);
    else if (word.text === "secret") secret = readSecret(value);
    else
      throw new SecretsFileError(
        word.line,
        `unknown word '${word.text}': a key has an algorithm and a secret`,
      );
    words.expect(";");
  }
  words.skip(";");
  if (secret === undefined) throw new SecretsFileError(line, `the key ${name} has no secret`);
  return { name, secret, ...algorithm };
}

interface Strength {
  readonly algorithm: TsigAlgorithm;
  readonly leastMacOctets?: number;
}

/** `hmac-sha256`, or `hmac-sha256-128` for a MAC truncated to 128 bits. */
function readAlgorithm({ text, line }: Word): Strength {
  const [, base = text, bits] = /^(hmac-sha\d+)-(\d+)$/.exec(text.toLowerCase()) ?? [];
  const algorithm = tsigAlgorithm(Name.tryParse(base) ?? Name.root);
  if (algorithm === undefined)
    throw new SecretsFileError(
      line,
      `unknown algorithm '${text}': use one of ${TSIG_ALGORITHM_NAMES.join(", ")}`,
    );
  if (bits === undefined) return { algorithm };
  const leastMacOctets = Number(bits) / 8;
  const least = Math.max(10, algorithm.octets / 2);
  if (!Number.isInteger(leastMacOctets) || leastMacOctets < least || leastMacOctets > algorithm.octets)
    throw new SecretsFileError(
      line,
      `'${text}': a MAC must have at least ${least * 8} bits (RFC 8945 section 5.2.2.1)`,
    );
  return { algorithm, leastMacOctets };
}

function readSecret({ text, line }: Word): Uint8Array {
  const secret = fromBase64(text.replaceAll(/\s/g, ""));
  if (secret === undefined || secret.length === 0)
    throw new SecretsFileError(line, "the secret is not base64");
  return secret;
}

/** Words, braces and semicolons; comments of all three kinds are skipped. */
class Words {
  readonly #words: Word[] = [];
  #next = 0;
  #line = 1;

  constructor(text: string) {
    const pattern = /\/\*[\s\S]*?\*\/|(?:\/\/|#).*|"([^"\n]*)"|[{};]|[^\s{};"]+|\n/g;
    for (const [whole, quoted] of text.matchAll(pattern)) {
      const isComment = whole.startsWith("/*") || whole.startsWith("//") || whole.startsWith("#");
      if (!isComment && whole !== "\n") this.#words.push({ text: quoted ?? whole, line: this.#line });
      this.#line += whole.split("\n").length - 1;
    }
  }

  next(): Word | undefined {
    return this.#words[this.#next++];
  }

  need(what: string): Word {
    const word = this.next();
    if (word === undefined) throw new SecretsFileError(this.#line, `the file ends where ${what} should be`);
    return word;
  }

  expect(text: string): void {
    const word = this.need(`'${text}'`);
    if (word.text !== text) throw new SecretsFileError(word.line, `expected '${text}', found '${word.text}'`);
  }

  skip(text: string): void {
    if (this.#words[this.#next]?.text === text) this.#next++;
  }
}
