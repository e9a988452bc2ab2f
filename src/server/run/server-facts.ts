/** Keeps the facts that a running server reports of its configuration. */

import type { Diagnostic } from "../../corefile/diagnostic.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type {
  BlockView,
  ConfigurationView,
  DiagnosticView,
  RefusalView,
  ServerView,
} from "../../plugin/contract/server-view.ts";
import {
  type Configuration,
  ConfigurationError,
  type CorefileSource,
} from "../configuration/configuration.ts";
import type { Generation } from "./generation.ts";

export class ServerFacts implements ServerView {
  startedAt = 0;
  readonly #clock: Clock;
  readonly #generation: () => Generation | undefined;
  readonly #threads: () => number;
  #source: CorefileSource = { text: "", file: "" };
  #inForceSince = 0;
  #refused: RefusalView | undefined;

  constructor(clock: Clock, generation: () => Generation | undefined, threads: () => number) {
    this.#clock = clock;
    this.#generation = generation;
    this.#threads = threads;
  }

  get threads(): number {
    return this.#threads();
  }

  /** A configuration came into force. */
  inForce(source: CorefileSource): void {
    const now = this.#clock.wallTime();
    if (this.startedAt === 0) this.startedAt = now;
    this.#source = source;
    this.#inForceSince = now;
    this.#refused = undefined;
  }

  /** A configuration was refused, or cannot be read. A repeated error changes nothing. */
  refused(error: unknown): void {
    const reason = messageOf(error);
    if (reason === this.#refused?.reason) return;
    this.#refused = {
      at: this.#clock.wallTime(),
      reason,
      diagnostics: error instanceof ConfigurationError ? error.diagnostics.map(diagnosticView) : [],
    };
  }

  /**
   * The Corefile was read again without an error. If it equals the configuration in force, the last refusal is over.
   */
  readAgain(sha512: string): void {
    if (sha512 === this.#generation()?.configuration.sha512) this.#refused = undefined;
  }

  blocks(): readonly BlockView[] {
    return this.#generation()?.blockViews() ?? [];
  }

  configuration(): ConfigurationView {
    const configuration: Configuration | undefined = this.#generation()?.configuration;
    return {
      file: this.#source.file,
      text: this.#source.text,
      sha512: configuration?.sha512 ?? "",
      inForceSince: this.#inForceSince,
      warnings: configuration?.warnings.map(diagnosticView) ?? [],
      refused: this.#refused,
    };
  }
}

function diagnosticView({ code, severity, message, span }: Diagnostic): DiagnosticView {
  return { code, severity, message, file: span.file, line: span.line, column: span.column };
}
