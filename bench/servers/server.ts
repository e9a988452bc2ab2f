/** A kind of server that can be measured: how it is configured and started. */
import type { ClusterFiles } from "../material.ts";

/** Where and for what a server runs. */
export interface Deployment {
  /** For files of its own. */
  readonly folder: string;
  /** On 127.0.0.1, as all ports here. */
  readonly port: number;
  readonly metricsPort: number;
  readonly upstreamPort: number;
  /** Answers that the cache has room for, 0 for no cache. */
  readonly cacheEntries: number;
  readonly workload: string;
  /** Lines for a Corefile, in front of the cache. */
  readonly directives?: readonly string[];
  readonly cluster: ClusterFiles;
  /** A listener beside the plain one, where the load needs it. */
  readonly encrypted?: EncryptedListener | undefined;
}

export interface EncryptedListener {
  readonly scheme: "tls" | "https" | "quic";
  readonly port: number;
  /** Files in PEM. */
  readonly certificate: string;
  readonly key: string;
  readonly authority: string;
}

export interface LaunchPlan {
  readonly command: string;
  readonly args: readonly string[];
  /** Changes to the environment. */
  readonly env?: NodeJS.ProcessEnv;
  /** Files in the deployment's folder, by name: the configuration. */
  readonly files: Readonly<Record<string, string>>;
}

export interface ServerKind {
  readonly name: string;
  readonly about: string;
  readonly speaksTcp: boolean;
  /** DNS over TLS, and over HTTPS. */
  readonly speaksTls: boolean;
  /** DNS over QUIC. */
  readonly speaksQuic: boolean;
  /** Sends back what it gets, without an answer in it. */
  readonly isEcho: boolean;
  /**
   * Makes ready what is needed on this machine, once.
   * @param folder where it may put files
   * @returns the version
   * @throws ServerUnavailable
   */
  prepare(folder: string): Promise<string>;
  launch(deployment: Deployment): LaunchPlan;
}

/** A server that cannot run here. The benchmark goes on without it. */
export class ServerUnavailable extends Error {
  override readonly name = "ServerUnavailable";
}
