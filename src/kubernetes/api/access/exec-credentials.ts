/** Programs that hand out credentials: `exec` in a kubeconfig, client.authentication.k8s.io v1 and v1beta1. */
import { execFile } from "node:child_process";
import type { Clock } from "../../../lib/time/clock.ts";
import { member, textMember } from "../../objects/json.ts";
import type { ExecSettings } from "./access.ts";
import { CredentialError, errorText } from "./api-error.ts";
import type { Credential, Credentials } from "./credential.ts";
import type { ProcessEnvironment } from "./proxy.ts";

const TIMEOUT_MS = 60_000;
const MAX_OUTPUT = 1024 * 1024;

export class ExecCredentials implements Credentials {
  readonly #settings: ExecSettings;
  readonly #clock: Clock;
  readonly #environment: ProcessEnvironment;
  #current: Credential | undefined;
  /** Unix time in milliseconds; Infinity where the program names none. */
  #expiresAt = 0;
  #running: Promise<Credential> | undefined;

  constructor(settings: ExecSettings, clock: Clock, environment: ProcessEnvironment) {
    this.#settings = settings;
    this.#clock = clock;
    this.#environment = environment;
  }

  current(): Promise<Credential> {
    if (this.#current !== undefined && this.#clock.wallTime() < this.#expiresAt)
      return Promise.resolve(this.#current);
    // Several watches that start at once ask the program once.
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  refused(): void {
    this.#current = undefined;
  }

  async #run(): Promise<Credential> {
    const { apiVersion, command, installHint } = this.#settings;
    let output: string;
    try {
      output = await this.#output();
    } catch (error) {
      const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
      const hint = isMissing && installHint !== "" ? ` (${installHint})` : "";
      throw new CredentialError(`the credential program ${command} failed: ${errorText(error)}${hint}`);
    }
    const credential = parseJson(output);
    if (
      textMember(credential, "kind") !== "ExecCredential" ||
      textMember(credential, "apiVersion") !== apiVersion
    ) {
      throw new CredentialError(
        `the credential program ${command} did not print an ExecCredential of ${apiVersion}`,
      );
    }
    const status = member(credential, "status");
    const token = textMember(status, "token").trim();
    const certificate = textMember(status, "clientCertificateData");
    const key = textMember(status, "clientKeyData");
    if (!/^[\x21-\x7e]*$/.test(token) || (token === "" && (certificate === "" || key === ""))) {
      throw new CredentialError(
        `the credential program ${command} printed neither a token nor certificate and key`,
      );
    }
    const expiry = Date.parse(textMember(status, "expirationTimestamp"));
    this.#expiresAt = Number.isNaN(expiry) ? Number.POSITIVE_INFINITY : expiry;
    this.#current = {
      ...(token !== "" && { authorization: `Bearer ${token}` }),
      ...(certificate !== "" && { certificate, key }),
    };
    return this.#current;
  }

  #output(): Promise<string> {
    const { apiVersion, command, args, environment, cluster } = this.#settings;
    const spec = { interactive: false, ...(cluster !== undefined && { cluster }) };
    const info = JSON.stringify({ apiVersion, kind: "ExecCredential", spec });
    const options = {
      env: { ...this.#environment, ...environment, KUBERNETES_EXEC_INFO: info },
      timeout: TIMEOUT_MS,
      maxBuffer: MAX_OUTPUT,
    };
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    execFile(command, args, options, (error, stdout) => {
      if (error instanceof Error) reject(error);
      else resolve(stdout);
    });
    return promise;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
