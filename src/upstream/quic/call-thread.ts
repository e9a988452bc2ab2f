/**
 * The thread with the QUIC connections to the upstreams of one plugin. It starts with the first connection and ends with the last
 * user.
 */

import { Worker } from "node:worker_threads";
import { programModule } from "../../lib/files/program-files.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { QuicTrust } from "../../quic/openssl/client-context.ts";
import { RecordWriter, readRecords } from "../../quic/records.ts";
import {
  Call,
  type CallPlace,
  CallReport,
  type CallThreadSettings,
  type FromCallThread,
  type ToCallThread,
} from "./calls.ts";

/** The owner of a connection. */
export interface CallUser {
  connected(): void;
  answered(query: number, message: Uint8Array): void;
  failed(query: number, reason: string): void;
  lost(reason: string): void;
}

export class CallThread {
  readonly #trust: QuicTrust;
  readonly #users = new Map<number, CallUser>();
  readonly #orders = new RecordWriter();
  #worker: Worker | undefined;
  #holders = 0;
  #lastNumber = 0;
  #isReading = false;
  #isScheduled = false;

  constructor(trust: QuicTrust) {
    this.#trust = trust;
  }

  /** Keeps the thread alive until {@link release}. */
  hold(): void {
    this.#holders++;
  }

  release(): void {
    if (--this.#holders > 0) return;
    const worker = this.#worker;
    this.#worker = undefined;
    this.#flush(worker);
    // The thread confirms when servers have been notified of the end.
    worker?.postMessage(null satisfies ToCallThread);
  }

  /** @returns the number of the connection */
  dial(place: CallPlace, user: CallUser): number {
    this.#worker ??= this.#begin();
    this.#lastNumber = (this.#lastNumber + 1) % 2 ** 32;
    this.#users.set(this.#lastNumber, user);
    this.#order(Call.DIAL, this.#lastNumber, 0, Buffer.from(JSON.stringify(place)));
    return this.#lastNumber;
  }

  ask(connection: number, query: number, message: Uint8Array): void {
    this.#order(Call.ASK, connection, query, message);
  }

  cancel(connection: number, query: number): void {
    this.#order(Call.CANCEL, connection, query, NONE);
  }

  hangUp(connection: number): void {
    if (this.#users.delete(connection)) this.#order(Call.HANG_UP, connection, 0, NONE);
  }

  #begin(): Worker {
    const worker = new Worker(programModule("upstream/quic/thread-main"), {
      workerData: { trust: this.#trust } satisfies CallThreadSettings,
      name: "portolan-quic-upstreams",
    });
    let fault = "the thread for QUIC ended";
    worker.on("message", (message: FromCallThread) => {
      if (message.kind === "done") void worker.terminate();
      else if (message.kind === "refused") fault = message.reason;
      else this.#hear(message.octets);
    });
    worker.on("error", (error: unknown) => {
      fault = messageOf(error);
    });
    worker.once("exit", () => {
      if (this.#worker !== worker) return;
      this.#worker = undefined;
      const users = [...this.#users.values()];
      this.#users.clear();
      for (const user of users) user.lost(fault);
    });
    return worker;
  }

  #hear(octets: Uint8Array): void {
    this.#isReading = true;
    readRecords(octets, (kind, connection, query, payload) => {
      const user = this.#users.get(connection);
      if (user === undefined) return;
      if (kind === CallReport.CONNECTED) user.connected();
      else if (kind === CallReport.ANSWERED) user.answered(query, payload);
      else if (kind === CallReport.FAILED) user.failed(query, Buffer.from(payload).toString());
      else {
        this.#users.delete(connection);
        user.lost(Buffer.from(payload).toString());
      }
    });
    this.#isReading = false;
    this.#flush(this.#worker);
  }

  #order(kind: number, connection: number, query: number, payload: Uint8Array): void {
    this.#orders.add(kind, connection, query, payload);
    if (this.#isReading || this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#flush(this.#worker);
    });
  }

  #flush(worker: Worker | undefined): void {
    if (this.#orders.isEmpty) return;
    const octets = this.#orders.take();
    worker?.postMessage(octets satisfies ToCallThread, [octets.buffer]);
  }
}

const NONE = new Uint8Array(0);
