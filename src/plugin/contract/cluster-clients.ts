/** What a plugin that serves the names of a cluster knows of the pods that ask it. */
export interface ClusterClients {
  /** The cluster domain that names of services end in, without final dot: `cluster.local`. */
  readonly domain: string;
  /** Whether pods are kept, so that {@link pod} knows them all. */
  readonly keepsPods: boolean;
  /** Addresses of a pod out of what is kept; `undefined` where there is none. */
  pod(namespace: string, name: string): readonly string[] | undefined;
  /** `undefined` while that is not known. */
  hasNamespace(namespace: string): boolean | undefined;
  /** What is still to be listed and why it has not come; empty when all is known. */
  readonly awaited: readonly string[];
  /** Whether there is an API, so that {@link readPod} can be asked. */
  readonly isLive: boolean;
  /**
   * Reads one pod as the cluster has it now.
   * @returns the object as in JSON, `undefined` where there is no such pod or no API
   * @throws with a message for the operator
   */
  readPod(namespace: string, name: string, signal: AbortSignal): Promise<unknown>;
}
