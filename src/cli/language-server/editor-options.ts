import type { CorefileHost } from "../../corefile/host.ts";
import type { PluginRegistry } from "../../server/configuration/plugin-registry.ts";

/** The environment of a session with an editor. */
export interface EditorOptions {
  /** Files that are not open in the editor, and the environment. */
  readonly host: CorefileHost;
  /** The plugins of a file, by its path; `undefined` for a text without one. */
  readonly registryFor: (file: string | undefined) => Promise<PluginRegistry>;
  /** For server blocks without a port. */
  readonly port: number;
  /** Whether to check the files that a Corefile names. */
  readonly files: boolean;
}
