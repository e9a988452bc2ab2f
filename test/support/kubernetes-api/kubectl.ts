/** `kubectl`, pointed at an API and at nothing else. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { skipWithout } from "../../../scripts/lib/system-tools.mjs";
import { Program, run } from "../program.ts";

/** For the `skip` option of a test. */
export const skipWithoutKubectl: string | false = skipWithout("kubectl");

export class Kubectl implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "portolan-kubectl-"));

  readonly #variables: NodeJS.ProcessEnv;

  /**
   * `flags` say how to reach and to convince the API: `--server=`, `--token=`, `--certificate-authority=`.
   * @param variables further ones of the environment
   */
  constructor(flags: readonly string[], variables: NodeJS.ProcessEnv = {}) {
    this.#variables = variables;
    const flag = (name: string) =>
      flags.find((each) => each.startsWith(`--${name}=`))?.slice(name.length + 3);
    const authority = flag("certificate-authority");
    writeFileSync(
      join(this.#folder, "config"),
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        clusters: [{ name: "c", cluster: { server: flag("server"), "certificate-authority": authority } }],
        users: [{ name: "u", user: { token: flag("token") } }],
        contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
        "current-context": "x",
      }),
    );
  }

  /** Runs it to its end. @returns what it printed @throws where it fails */
  async run(args: readonly string[], input?: string): Promise<string> {
    const ending = await run("kubectl", args, {
      env: this.#environment,
      ...(input !== undefined && { input }),
    });
    if (ending.code !== 0) throw new Error(`kubectl ${args.join(" ")}: ${ending.output}${ending.errors}`);
    return ending.output;
  }

  /** Runs it to its end, whatever that is. */
  end(args: readonly string[]): ReturnType<typeof run> {
    return run("kubectl", args, { env: this.#environment });
  }

  /** Starts it, for what goes on until it is stopped. */
  start(args: readonly string[]): Program {
    return new Program("kubectl", args, { env: this.#environment });
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #environment(): NodeJS.ProcessEnv {
    // kubectl's discovery cache must not outlive the test.
    return {
      KUBECONFIG: join(this.#folder, "config"),
      HOME: this.#folder,
      KUBECACHEDIR: join(this.#folder, "cache"),
      ...this.#variables,
    };
  }
}
