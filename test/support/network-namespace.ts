/** Networks of the test's own, in which it may have any address: Linux network namespaces, for which no root is needed. */
import { Program, run } from "./program.ts";

export class NetworkNamespace implements AsyncDisposable {
  readonly #holder: Program;

  private constructor(holder: Program) {
    this.#holder = holder;
  }

  /** @returns why this machine cannot make one */
  static async whyNot(): Promise<string | undefined> {
    for (const words of [
      ["unshare", "--map-root-user", "--net", "true"],
      ["nsenter", "--version"],
      ["ip", "-V"],
    ] as const) {
      const [command, ...args] = words;
      const ended = await run(command, args).catch(() => undefined);
      if (ended?.code !== 0) return `'${words.join(" ")}' does not work here`;
    }
    return undefined;
  }

  /** @param beside is under the same user, so that links can lead from one to the other */
  static async make(beside?: NetworkNamespace): Promise<NetworkNamespace> {
    const hold = ["--net", "sh", "-c", "echo made; exec sleep infinity"];
    const words =
      beside === undefined ? ["unshare", "--map-root-user", ...hold] : beside.words("unshare", ...hold);
    const [command = "", ...args] = words;
    const namespace = new NetworkNamespace(new Program(command, args));
    await namespace.#holder.waitForOutput(/made/);
    await namespace.ip("link", "set", "lo", "up");
    return namespace;
  }

  get pid(): number {
    return this.#holder.pid;
  }

  /** A command line that runs another one in here. */
  words(...command: readonly string[]): string[] {
    return ["nsenter", "--preserve-credentials", "--user", "--net", "--target", String(this.pid), ...command];
  }

  /** @throws where the command fails */
  async run(...command: readonly string[]): Promise<string> {
    const [program = "", ...args] = this.words(...command);
    const { code, output, errors } = await run(program, args);
    if (code !== 0) throw new Error(`${command.join(" ")} ended with exit code ${code}:\n${output}${errors}`);
    return output;
  }

  ip(...words: readonly string[]): Promise<string> {
    return this.run("ip", ...words);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#holder[Symbol.asyncDispose]();
  }
}
