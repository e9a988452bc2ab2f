/** Where the API is and how to get in, from whatever source: the facts alone, nothing is opened or read here. */
import { type ProcessEnvironment, proxyFor } from "./proxy.ts";

/** Octets in a file, which may change, or given once and for all. */
export type Material = { readonly file: string } | { readonly content: Uint8Array };

export interface ClusterAccess {
  /** Absolute URLs without final slash, asked in turn while they fail. At least one. */
  readonly servers: readonly string[];
  readonly tls: TlsSettings;
  readonly credentials: CredentialSource;
  /** `http://`, `https://` or `socks5://`; undefined for a direct connection. */
  readonly proxy: string | undefined;
  /** Headers that go with every request: whom to act for. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Where these facts come from, for messages: "the kubeconfig /etc/kubeconfig". */
  readonly origin: string;
}

export interface TlsSettings {
  /** Undefined for the authorities that Node knows. */
  readonly authority: Material | undefined;
  readonly certificate: Material | undefined;
  readonly key: Material | undefined;
  /** The name that the server's certificate must be for, where it is not that of the URL. */
  readonly serverName: string | undefined;
  readonly insecure: boolean;
}

export type CredentialSource =
  | { readonly kind: "none" }
  | { readonly kind: "token"; readonly token: string }
  | { readonly kind: "tokenFile"; readonly file: string }
  | { readonly kind: "basic"; readonly username: string; readonly password: string }
  | { readonly kind: "exec"; readonly exec: ExecSettings };

/** A program that hands out credentials (client.authentication.k8s.io). */
export interface ExecSettings {
  readonly apiVersion: string;
  /** Absolute, or a name to be found in PATH. */
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly installHint: string;
  /** What the program is told of the cluster, where it asks to be told. */
  readonly cluster: Readonly<Record<string, unknown>> | undefined;
}

/** Access that cannot be worked out: something is missing or does not make sense. Fatal at start. */
export class ClusterAccessError extends Error {
  override readonly name = "ClusterAccessError";
  readonly origin: string;
  readonly reason: string;

  constructor(origin: string, reason: string) {
    super(`${origin}: ${reason}`);
    this.origin = origin;
    this.reason = reason;
  }
}

export const NO_TLS: TlsSettings = {
  authority: undefined,
  certificate: undefined,
  key: undefined,
  serverName: undefined,
  insecure: false,
};

const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * As every pod finds the API of its cluster. The files are read later, again and again: the token changes every hour.
 * @throws ClusterAccessError outside of a pod
 */
export function inClusterAccess(
  environment: ProcessEnvironment,
  folder = SERVICE_ACCOUNT_FOLDER,
): ClusterAccess {
  const { KUBERNETES_SERVICE_HOST: host = "", KUBERNETES_SERVICE_PORT: port = "" } = environment;
  if (host === "" || port === "") {
    throw new ClusterAccessError(
      "in-cluster configuration",
      "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set, so this process does not run in a pod; " +
        "name a cluster with 'kubeconfig FILE' or 'endpoint URL', or files with 'manifests PATH'",
    );
  }
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return {
    servers: [server],
    tls: { ...NO_TLS, authority: { file: `${folder}/ca.crt` } },
    credentials: { kind: "tokenFile", file: `${folder}/token` },
    proxy: proxyFor(server, environment),
    headers: [],
    origin: "in-cluster configuration",
  };
}

/** Files of the option `tls`. */
export interface EndpointTls {
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
}

/**
 * The options `endpoint` and `tls`.
 * @throws ClusterAccessError for what is no URL
 */
export function endpointAccess(
  urls: readonly string[],
  tls: EndpointTls | undefined,
  environment: ProcessEnvironment,
): ClusterAccess {
  const servers = urls.map((url) => readServer(url, "endpoint"));
  return {
    servers,
    tls:
      tls === undefined
        ? NO_TLS
        : {
            ...NO_TLS,
            authority: { file: tls.authority },
            certificate: { file: tls.certificate },
            key: { file: tls.key },
          },
    credentials: { kind: "none" },
    proxy: servers[0] === undefined ? undefined : proxyFor(servers[0], environment),
    headers: [],
    origin: "endpoint",
  };
}

/**
 * The URL of an API server, without final slash. Without scheme it is http, as for every client of Kubernetes.
 * @throws ClusterAccessError
 */
export function readServer(text: string, origin: string): string {
  const written = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.parse(written);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:") || url.hostname === "") {
    throw new ClusterAccessError(
      origin,
      `"${text}" is not the URL of an API server, such as https://10.0.0.1:6443`,
    );
  }
  if (url.search !== "" || url.hash !== "") {
    throw new ClusterAccessError(
      origin,
      `"${text}" has a query or a fragment, which the URL of a server has not`,
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}
