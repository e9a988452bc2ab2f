/** The process's reactions to signals (docs/spec/coredns-behaviour.md#signals). */

import type { ProcessLog } from "../lib/logging/log.ts";
import { messageOf } from "../lib/text/message-of.ts";
import type { Server } from "../server/server.ts";

export interface Ending {
  readonly code: number;
  /** Logged as fatal before the process exits. */
  readonly fatal?: string;
}

export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  removeListener(signal: NodeJS.Signals, listener: () => void): unknown;
}

const EXIT = { HOOKS_FAILED: 4, STOP_FAILED: 3, FORCED: 2, CLEAN: 0 } as const;

/** @returns a function that removes the listeners */
export function obeySignals(
  source: SignalSource,
  server: Pick<Server, "reload" | "stop">,
  log: ProcessLog,
  end: (ending: Ending) => void,
): () => void {
  let stopping = false;
  const stop = (message: string): void => {
    log.info(message);
    if (stopping) return;
    stopping = true;
    server.stop().then(
      (failedHooks) => end({ code: failedHooks > 0 ? EXIT.HOOKS_FAILED : EXIT.CLEAN }),
      (error: unknown) => {
        log.error(`Error stopping servers: ${messageOf(error)}`);
        end({ code: EXIT.STOP_FAILED });
      },
    );
  };
  let interrupts = 0;
  const listeners: Partial<Record<NodeJS.Signals, () => void>> = {
    SIGINT: () => {
      interrupts++;
      if (interrupts === 1) {
        stop("SIGINT: Shutting down");
        return;
      }
      log.info("SIGINT: Force quit");
      end({ code: EXIT.FORCED });
    },
    SIGTERM: () => stop("SIGTERM: Shutting down servers then terminating"),
    SIGQUIT: () => {
      log.info("SIGQUIT: Quitting process immediately");
      end({ code: EXIT.CLEAN });
    },
    SIGUSR1: () => {
      log.info("SIGUSR1: Reloading");
      // The server has logged the reason and runs on unchanged. This line has CoreDNS's words for tools that watch its log.
      server.reload().catch((error: unknown) => {
        const [first = ""] = messageOf(error).trim().split("\n");
        log.error(`SIGUSR1: starting with listener file descriptors: ${first}`);
      });
    },
    SIGUSR2: () => log.info("SIGUSR2: binary upgrade is not supported; start the new version in parallel"),
    SIGHUP: () => undefined,
  };
  const entries = Object.entries(listeners) as [NodeJS.Signals, () => void][];
  for (const [signal, listener] of entries) source.on(signal, listener);
  return () => {
    for (const [signal, listener] of entries) source.removeListener(signal, listener);
  };
}
