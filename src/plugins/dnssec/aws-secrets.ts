/**
 * Keys from AWS Secrets Manager: JSON with the texts of both key files. The client is a separate package, loaded on
 * use.
 */

import { type KeyPair, KeyPairError, readKeyPair } from "../../dns/index.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { SetupError } from "../../plugin/index.ts";

const PACKAGE = "@aws-sdk/client-secrets-manager";

/** The parts of the package in use. */
interface SecretsModule {
  SecretsManagerClient: new (
    options: object,
  ) => { send(command: unknown): Promise<{ SecretString?: string }> };
  GetSecretValueCommand: new (input: { SecretId: string }) => unknown;
}

/** Loads the module of a package. */
export type ModuleLoader = (name: string) => Promise<unknown>;

const importModule: ModuleLoader = (name) => import(name);

/** @throws SetupError */
export async function readSecretKey(secret: string, load: ModuleLoader = importModule): Promise<KeyPair> {
  const { SecretsManagerClient, GetSecretValueCommand } = await loadPackage(load);
  let text: string | undefined;
  try {
    const client = new SecretsManagerClient({});
    ({ SecretString: text } = await client.send(new GetSecretValueCommand({ SecretId: secret })));
  } catch (error) {
    throw new SetupError(`cannot read the secret "${secret}": ${describe(error)}`);
  }
  const { key, private: privateText } = parseSecret(secret, text ?? "");
  try {
    return readKeyPair(key, privateText);
  } catch (error) {
    if (error instanceof KeyPairError)
      throw new SetupError(`the secret "${secret}", field '${error.file}': ${error.message}`);
    throw error;
  }
}

async function loadPackage(load: ModuleLoader): Promise<SecretsModule> {
  let loaded: unknown;
  try {
    loaded = await load(PACKAGE);
  } catch (error) {
    throw new SetupError(
      `'key aws_secretsmanager' needs the package ${PACKAGE}: run 'npm install ${PACKAGE}' beside Portolan (${describe(error)})`,
    );
  }
  if (!isSecretsModule(loaded))
    throw new SetupError(`this version of the package ${PACKAGE} is not supported`);
  return loaded;
}

function isSecretsModule(value: unknown): value is SecretsModule {
  return (
    typeof value === "object" &&
    value !== null &&
    "SecretsManagerClient" in value &&
    "GetSecretValueCommand" in value
  );
}

function parseSecret(secret: string, text: string): { key: string; private: string } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (
    typeof value === "object" &&
    value !== null &&
    "key" in value &&
    "private" in value &&
    typeof value.key === "string" &&
    typeof value.private === "string"
  )
    return { key: value.key, private: value.private };
  throw new SetupError(`the secret "${secret}" is not a JSON object with the fields 'key' and 'private'`);
}

function describe(error: unknown): string {
  return messageOf(error);
}
