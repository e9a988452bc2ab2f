/** The pods that query a plugin which serves a cluster's names. */
export interface ClusterClients {
  /** The cluster domain of service names, without final dot: `cluster.local`. */
  readonly domain: string;
  /** Whether the plugin stores pods, so that {@link pod} finds all of them. */
  readonly keepsPods: boolean;
  /** Addresses of a stored pod; `undefined` if there is no such pod. */
  pod(namespace: string, name: string): readonly string[] | undefined;
  /** `undefined` while the namespaces are not known yet. */
  hasNamespace(namespace: string): boolean | undefined;
  /** The resources that are still to be listed, each with the reason of the delay; empty when all are listed. */
  readonly awaited: readonly string[];
  /** Whether {@link readPod} has an API to ask. */
  readonly isLive: boolean;
  /**
   * Reads one pod from the API.
   * @returns the object as in JSON, `undefined` without such a pod or without an API
   * @throws an error with a message for the operator
   */
  readPod(namespace: string, name: string, signal: AbortSignal): Promise<unknown>;
}
