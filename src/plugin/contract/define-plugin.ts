/** What a plugin is: a pure declaration of its configuration, and a maker of running instances. */

import type { DiagnosticSink, Span } from "../../corefile/diagnostic.ts";
import type { Directive } from "../../corefile/tree.ts";
import type { ConfigSchema } from "../config/schema.ts";
import type { PluginInstance } from "./plugin-instance.ts";
import type { BlockSettings, Machine, Site } from "./site.ts";
import type { ZoneClaims } from "./zone-claims.ts";

export interface PluginDefinition<T> {
  /** The directive's name. */
  readonly name: string;
  /** One sentence for lists and help. */
  readonly summary: string;
  readonly config: ConfigSchema<T>;
  /** Versions of Portolan that the plugin works with, such as `>=0.2.0 <1`; it is refused by any other. */
  readonly requires?: string;
  /** Directives that have to stand in the same server block. */
  readonly needs?: readonly string[];
  /** Its presence opens all query classes for the listener (docs/spec/coredns-behaviour.md#admission). */
  readonly allClasses?: boolean;
  /**
   * The process needs one instance, whatever the number of its data planes (`multisocket`): there is none on the further threads.
   * For plugins that answer no queries.
   */
  readonly leaderOnly?: boolean;
  /**
   * The zones that a directive answers for, so that lint can warn of plugins that are never reached. It is read from the words of the
   * Corefile, which may be faulty. `undefined` where that cannot be told, as for a plugin without this member.
   */
  claims?(directive: Directive): ZoneClaims | undefined;
  /** Where its instance serves pages over HTTP, as `HOST:PORT`: no server block can listen on that port. */
  httpAddress?(config: T): string;
  /**
   * Sets what belongs to the whole block, before any instance is made. Must not open anything; `report` takes what is
   * wrong, at `span`, the place of the directive.
   */
  configure?(config: T, settings: BlockSettings, setup: SetupContext): void;
  /**
   * Makes an instance. Must not open anything either: that is for `start`. May throw {@link SetupError}. Left out by plugins that
   * only set the block.
   */
  create?(config: T, site: Site): PluginInstance;
  /**
   * Makes instances for each block of a configuration that names the directive anywhere, besides those that {@link create} makes, in the
   * same place of the chain: for what a directive means for the blocks that do not have it. Of plugins that come with the program
   * alone.
   * @param configs all that the configuration says of the directive
   * @internal
   */
  createForEveryBlock?(configs: readonly T[], site: Site): readonly PluginInstance[];
}

export interface SetupContext {
  readonly machine: Machine;
  readonly report: DiagnosticSink;
  readonly span: Span;
}

/** What `create` or `start` cannot work with; shown to the operator as it is. */
export class SetupError extends Error {
  override readonly name = "SetupError";
  /** What to do about it, in sentences. */
  readonly notes: readonly string[];

  constructor(message: string, { cause, notes = [] }: { cause?: unknown; notes?: readonly string[] } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.notes = notes;
  }
}

/**
 * Declares a plugin. A module's default export is the value of this function.
 */
export function definePlugin<T>(definition: PluginDefinition<T>): PluginDefinition<T> {
  return definition;
}
