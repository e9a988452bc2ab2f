/** The kubeconfig file: clusters, users, and the contexts that join them. */

import { dirname, isAbsolute, resolve } from "node:path";
import { parseDocument } from "yaml";
import { messageOf } from "../../../lib/text/message-of.ts";
import { isObject, type JsonObject, listMember, member, textMember } from "../../objects/json.ts";
import {
  type ClusterAccess,
  ClusterAccessError,
  type CredentialSource,
  type ExecSettings,
  type Material,
  readServer,
  type TlsSettings,
} from "./access.ts";
import { type ProcessEnvironment, proxyFor } from "./proxy.ts";

/** @throws ClusterAccessError with the file and what is wrong in it */
export function parseKubeconfig(
  text: string,
  file: string,
  context: string | undefined,
  environment: ProcessEnvironment,
): ClusterAccess {
  return new KubeconfigReader(text, file, environment).read(context);
}

/** More than any kubeconfig has, and little enough to parse at once. */
export const MAX_KUBECONFIG_SIZE: number = 8 * 1024 * 1024;

const EXEC_VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

class KubeconfigReader {
  readonly #origin: string;
  readonly #folder: string;
  readonly #environment: ProcessEnvironment;
  readonly #config: JsonObject;

  constructor(text: string, file: string, environment: ProcessEnvironment) {
    this.#origin = `kubeconfig ${file}`;
    this.#folder = dirname(file);
    this.#environment = environment;
    this.#config = this.#parse(text);
  }

  read(wanted: string | undefined): ClusterAccess {
    const contextName = wanted ?? textMember(this.#config, "current-context");
    if (contextName === "") this.#refuse("no current-context; name one: kubeconfig FILE CONTEXT");
    const context = this.#named("contexts", "context", contextName);
    const cluster = this.#named("clusters", "cluster", textMember(context, "cluster"));
    const userName = textMember(context, "user");
    const user = userName === "" ? {} : this.#named("users", "user", userName);
    const server = readServer(textMember(cluster, "server"), this.#origin);
    const tls = this.#tls(cluster, user);
    const ownProxy = textMember(cluster, "proxy-url");
    return {
      servers: [server],
      tls,
      credentials: this.#credentials(user, cluster),
      proxy: this.#checkProxy(ownProxy === "" ? proxyFor(server, this.#environment) : ownProxy),
      headers: this.#impersonation(user),
      origin: this.#origin,
    };
  }

  #parse(text: string): JsonObject {
    if (text.length > MAX_KUBECONFIG_SIZE) this.#refuse("larger than 8 MiB");
    const document = parseDocument(text);
    const [problem] = document.errors;
    if (problem !== undefined)
      this.#refuse(`not valid YAML: ${problem.message.split("\n")[0]?.replace(/:$/, "")}`);
    let value: unknown;
    try {
      value = document.toJS({ maxAliasCount: 100 });
    } catch (error) {
      this.#refuse(messageOf(error));
    }
    if (!isObject(value)) this.#refuse("not a kubeconfig: expected a mapping");
    return value;
  }

  #named(list: string, key: string, name: string): JsonObject {
    const entries = listMember(this.#config, list);
    const found = entries.find((entry) => textMember(entry, "name") === name);
    const value = member(found, key);
    if (isObject(value)) return value;
    const names = entries.map((entry) => textMember(entry, "name")).filter((each) => each !== "");
    const known = names.length === 0 ? "it has none" : `it has ${names.join(", ")}`;
    this.#refuse(`no ${key} "${name}" among its ${list}: ${known}`);
  }

  #tls(cluster: JsonObject, user: JsonObject): TlsSettings {
    const insecure = member(cluster, "insecure-skip-tls-verify") === true;
    const authority = this.#material(cluster, "certificate-authority");
    if (insecure && authority !== undefined) {
      this.#refuse("insecure-skip-tls-verify and certificate-authority cannot be used together");
    }
    const certificate = this.#material(user, "client-certificate");
    const key = this.#material(user, "client-key");
    if ((certificate === undefined) !== (key === undefined)) {
      this.#refuse("client-certificate and client-key belong together, and one is missing");
    }
    return {
      authority,
      certificate,
      key,
      serverName: textMember(cluster, "tls-server-name") || undefined,
      insecure,
    };
  }

  /** `NAME-data` before `NAME`, as everywhere. */
  #material(owner: JsonObject, name: string): Material | undefined {
    const data = textMember(owner, `${name}-data`);
    if (data !== "") {
      const content = Buffer.from(data, "base64");
      if (content.length === 0) this.#refuse(`${name}-data is not base64`);
      return { content };
    }
    const file = textMember(owner, name);
    return file === "" ? undefined : { file: this.#path(file) };
  }

  #credentials(user: JsonObject, cluster: JsonObject): CredentialSource {
    if (member(user, "auth-provider") !== undefined) {
      const name = textMember(member(user, "auth-provider"), "name");
      this.#refuse(
        `auth-provider "${name}" is gone from Kubernetes since 1.26: use the exec plugin of that provider`,
      );
    }
    const file = textMember(user, "tokenFile");
    if (file !== "") return { kind: "tokenFile", file: this.#path(file) };
    const token = textMember(user, "token");
    if (token !== "") return { kind: "token", token: this.#headerValue("token", token) };
    const username = textMember(user, "username");
    if (username !== "") return { kind: "basic", username, password: textMember(user, "password") };
    const exec = member(user, "exec");
    return exec === undefined || exec === null
      ? { kind: "none" }
      : { kind: "exec", exec: this.#exec(exec, cluster) };
  }

  #exec(exec: unknown, cluster: JsonObject): ExecSettings {
    const apiVersion = textMember(exec, "apiVersion");
    const command = textMember(exec, "command");
    if (!EXEC_VERSIONS.includes(apiVersion)) {
      this.#refuse(`exec: apiVersion "${apiVersion}" is not one of ${EXEC_VERSIONS.join(", ")}`);
    }
    if (command === "") this.#refuse("exec: command is missing");
    if (textMember(exec, "interactiveMode") === "Always") {
      this.#refuse("exec: interactiveMode Always needs a terminal");
    }
    const environment = listMember(exec, "env").map((entry) => [
      textMember(entry, "name"),
      textMember(entry, "value"),
    ]);
    return {
      apiVersion,
      // A command without a slash is looked for in PATH.
      command: command.includes("/") ? this.#path(command) : command,
      args: listMember(exec, "args").map(String),
      environment: Object.fromEntries(environment),
      installHint: textMember(exec, "installHint"),
      cluster: member(exec, "provideClusterInfo") === true ? cluster : undefined,
    };
  }

  /** Whom to act for: headers of their own, of which some stand several times. */
  #impersonation(user: JsonObject): (readonly [string, string])[] {
    const headers: [string, string][] = [];
    const add = (name: string, value: string) => headers.push([name, this.#headerValue(name, value)]);
    const name = textMember(user, "as");
    if (name !== "") add("Impersonate-User", name);
    const uid = textMember(user, "as-uid");
    if (uid !== "") add("Impersonate-Uid", uid);
    for (const group of listMember(user, "as-groups")) add("Impersonate-Group", String(group));
    const extra = member(user, "as-user-extra");
    for (const key of isObject(extra) ? Object.keys(extra) : []) {
      const escaped = key.replace(/[^a-z0-9.-]/gi, (character) => encodeURIComponent(character));
      for (const value of listMember(extra, key)) add(`Impersonate-Extra-${escaped}`, String(value));
    }
    if (headers.length > 0 && name === "") this.#refuse("as-uid, as-groups and as-user-extra need 'as'");
    return headers;
  }

  #headerValue(name: string, value: string): string {
    const trimmed = value.trim();
    if (!/^[\x20-\x7e]+$/.test(trimmed)) this.#refuse(`${name} holds characters that no header can`);
    return trimmed;
  }

  #checkProxy(proxy: string | undefined): string | undefined {
    if (proxy === undefined || /^(https?|socks5):$/.test(URL.parse(proxy)?.protocol ?? "")) return proxy;
    this.#refuse(`proxy "${proxy}" is not an http, https or socks5 URL`);
  }

  #path(file: string): string {
    return isAbsolute(file) ? file : resolve(this.#folder, file);
  }

  #refuse(reason: string): never {
    throw new ClusterAccessError(this.#origin, reason);
  }
}
