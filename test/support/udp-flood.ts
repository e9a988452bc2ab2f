/** Several processes that send UDP as fast as they can, to see what becomes of everything else. */
import { fileURLToPath } from "node:url";
import type { Server } from "./dns-client.ts";
import { Program } from "./program.ts";

/** Names that the server has; no DNS messages; or names that were never queried before. */
export type FloodKind = "answerable" | "rubbish" | "unknown";

const SENDER = fileURLToPath(new URL("udp-flood-sender.ts", import.meta.url));

export class UdpFlood implements AsyncDisposable {
  readonly #senders: readonly Program[];

  /** Begins at once: a sender for each kind. */
  constructor({ port }: Server, kinds: readonly FloodKind[]) {
    this.#senders = kinds.map((kind) => new Program(process.execPath, [SENDER, String(port), kind]));
  }

  /** @returns how many datagrams each sender has sent */
  async stop(): Promise<readonly number[]> {
    await Promise.all(this.#senders.map((sender) => sender.stop()));
    return this.#senders.map((sender) => {
      if (!/^\d+\n$/.test(sender.output)) throw new Error(`a sender failed:\n${sender.describe()}`);
      return Number(sender.output);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#senders.map((sender) => sender[Symbol.asyncDispose]()));
  }
}
