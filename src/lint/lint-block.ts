import type { ServerKey } from "../corefile/server-key.ts";
import type { Directive } from "../corefile/tree.ts";
import type { Name } from "../dns/name.ts";
import type { BlockSettings } from "../plugin/contract/site.ts";

export interface LintBlock {
  readonly keys: readonly ServerKey[];
  /** Of the keys, in order. */
  readonly zones: readonly Name[];
  /** As written. */
  readonly directives: readonly Directive[];
  readonly settings: Pick<BlockSettings, "listenHosts" | "listensNowhere">;
}
