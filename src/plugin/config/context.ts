/** The context in which a configuration is read. */
import type { DiagnosticSink } from "../../corefile/diagnostic.ts";
import type { ServerKey } from "../../corefile/server-key.ts";
import type { Name } from "../../dns/name.ts";

/** The surroundings of a directive while it is read. */
export interface ConfigContext {
  /** Zones of the server block, reverse CIDRs expanded, in the order of its keys. */
  readonly zones: readonly Name[];
  readonly keys: readonly ServerKey[];
  readonly report: DiagnosticSink;
}
