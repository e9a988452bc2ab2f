/** The definition of a plugin: a pure declaration of its configuration, and a factory of running instances. */

import type { DiagnosticSink, Span } from "../../corefile/diagnostic.ts";
import type { Directive } from "../../corefile/tree.ts";
import type { ConfigSchema } from "../config/schema.ts";
import type { PluginInstance } from "./plugin-instance.ts";
import type { BlockSettings, Machine, Site } from "./site.ts";
import type { ZoneClaims } from "./zone-claims.ts";

/** What a plugin is: its name, its grammar, and how to make an instance. */
export interface PluginDefinition<T> {
  /** The directive's name. */
  readonly name: string;
  /** One sentence for lists and help. */
  readonly summary: string;
  /** The grammar of the directive: made by `directive`, `bareDirective` or `customDirective`. */
  readonly config: ConfigSchema<T>;
  /** Versions of Portolan that the plugin works with, such as `>=0.2.0 <1`; other versions refuse it. */
  readonly requires?: string;
  /** Directives that must be in the same server block. */
  readonly needs?: readonly string[];
  /** Its presence enables all query classes for the listener (docs/spec/coredns-behaviour.md#admission). */
  readonly allClasses?: boolean;
  /**
   * One instance serves the whole process, however many data planes it has (`multisocket`): further threads get none.
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
   * Sets options of the whole block, before any instance is made. Must not open anything; errors go to `report`, at
   * `span`, the place of the directive.
   */
  configure?(config: T, settings: BlockSettings, setup: SetupContext): void;
  /**
   * Makes an instance. Must not open anything either: `start` does. May throw {@link SetupError}. Plugins that only
   * configure the block leave it out.
   */
  create?(config: T, site: Site): PluginInstance;
  /**
   * Makes instances for every block, if any block of the configuration names the directive. They are additional to
   * those of {@link create}, and have the same place in the chain. For a directive that affects blocks without it.
   * Built-in plugins only.
   * @param configs every configuration of the directive
   * @internal
   */
  createForEveryBlock?(configs: readonly T[], site: Site): readonly PluginInstance[];
}

/** What `configure` may use. */
export interface SetupContext {
  readonly machine: Machine;
  readonly report: DiagnosticSink;
  readonly span: Span;
}

/** A problem that `create` or `start` reports to the operator, as written. */
export class SetupError extends Error {
  override readonly name = "SetupError";
  /** The remedies, in sentences. */
  readonly notes: readonly string[];

  constructor(message: string, { cause, notes = [] }: { cause?: unknown; notes?: readonly string[] } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.notes = notes;
  }
}

/** Declares a plugin. A module's default export is the value of this function. */
export function definePlugin<T>(definition: PluginDefinition<T>): PluginDefinition<T> {
  return definition;
}
