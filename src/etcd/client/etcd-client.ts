/** Client of etcd's API version 3 with several endpoints: if one does not answer, the next is used. */

import type { SecureContext } from "node:tls";
import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { GrpcStatus } from "../../lib/net/grpc-message.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { clientContext } from "../../upstream/encrypted/tls-client.ts";
import { EtcdError } from "./etcd-error.ts";
import {
  Auth,
  KV,
  Lease,
  type LeaseTimeToLiveResponse,
  type RangeResponse,
  type RequestOpSchema,
  Watch,
  type WatchResponse,
} from "./etcd-pb.ts";
import { GrpcChannel, type Metadata, type Method } from "./grpc-channel.ts";

/** `[from, to)` of all keys; without `to` one key. */
export interface KeyRange {
  readonly from: Uint8Array;
  readonly to?: Uint8Array;
}

export interface RangeQuery extends KeyRange {
  readonly limit: number;
  /** 0n for the newest. */
  readonly revision: bigint;
}

export type Mutation =
  | { readonly put: Uint8Array; readonly value: Uint8Array }
  | { readonly remove: KeyRange };

export interface EtcdClientOptions {
  /** URLs, at least one. */
  readonly endpoints: readonly string[];
  /** For `https`; without it, the system's authorities are trusted. */
  readonly context?: SecureContext | undefined;
  readonly credentials?: { readonly user: string; readonly password: string } | undefined;
  readonly clock: Clock;
  /** Milliseconds for one call. */
  readonly timeout: number;
}

export interface WatchedRange {
  readonly range: KeyRange;
  /** The last revision whose changes are known. */
  readonly revision: bigint;
}

export interface WatchReceiver {
  reply(reply: WatchResponse): void;
  /** The watch has ended; called once. */
  ended(error: EtcdError): void;
}

export interface RunningWatch {
  close(): void;
}

export class EtcdClient {
  readonly #options: EtcdClientOptions;
  readonly #channels: readonly GrpcChannel[];
  #current = 0;
  #token: string | undefined;

  constructor(options: EtcdClientOptions) {
    const { endpoints, clock } = options;
    const isSecure = endpoints.some((url) => url.startsWith("https:"));
    const context = options.context ?? (isSecure ? clientContext({}) : undefined);
    this.#options = options;
    this.#channels = endpoints.map((url) => new GrpcChannel({ url, context, clock }));
  }

  /** The current endpoint. */
  get endpoint(): string {
    return this.#channel.url;
  }

  /** @throws EtcdError */
  range({ from, to, limit, revision }: RangeQuery): Promise<RangeResponse> {
    return this.#call(KV.method.range, { ...wire({ from, to }), limit: BigInt(limit), revision });
  }

  /**
   * Changes several keys atomically. By default, etcd takes 128 changes at a time.
   * @throws EtcdError
   */
  async change(mutations: readonly Mutation[]): Promise<void> {
    await this.#call(KV.method.txn, { success: mutations.map(operation) });
  }

  /** @throws EtcdError */
  lease(id: bigint): Promise<LeaseTimeToLiveResponse> {
    return this.#call(Lease.method.leaseTimeToLive, { ID: id });
  }

  /**
   * Watches these ranges over one stream, each from the revision after its own. The replies identify them by position, from 1.
   * @throws EtcdError if the watch cannot start
   */
  async watch(ranges: readonly WatchedRange[], receiver: WatchReceiver): Promise<RunningWatch> {
    const token = await this.#login();
    const channel = this.#channel;
    // Otherwise a member that has lost the others would stay silent forever.
    const metadata = { ...token, hasleader: "true" };
    const stream = channel.open(Watch.method.watch, metadata, {
      message: (reply) => receiver.reply(reply),
      ended: (error) => {
        this.#look(error, channel);
        receiver.ended(error);
      },
    });
    for (const [index, { range, revision }] of ranges.entries())
      stream.send({
        createRequest: {
          ...wire(range),
          watchId: BigInt(index + 1),
          startRevision: revision + 1n,
          progressNotify: true,
          fragment: true,
        },
      });
    return stream;
  }

  close(): void {
    for (const channel of this.#channels) channel.close();
  }

  get #channel(): GrpcChannel {
    const channel = this.#channels[this.#current];
    if (channel === undefined) throw new RangeError("etcd needs an endpoint");
    return channel;
  }

  async #call<I extends DescMessage, O extends DescMessage>(
    method: Method<I, O>,
    request: MessageInitShape<I>,
  ): Promise<MessageShape<O>> {
    let attempts = this.#channels.length;
    let mayLogin = true;
    for (;;) {
      const channel = this.#channel;
      try {
        const metadata = await this.#login();
        return await channel.unary(method, request, metadata, this.#options.timeout);
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error;
        this.#look(error, channel);
        if (error.isUnreachable && --attempts > 0) continue;
        if (!error.wantsLogin || !mayLogin || this.#options.credentials === undefined) throw error;
        mayLogin = false;
      }
    }
  }

  /** Adjusts endpoint and token after an error. */
  #look(error: EtcdError, failed: GrpcChannel): void {
    if (error.wantsLogin) this.#token = undefined;
    if (!error.isUnreachable || failed !== this.#channel) return;
    failed.close();
    this.#token = undefined;
    this.#current = (this.#current + 1) % this.#channels.length;
  }

  async #login(): Promise<Metadata> {
    const { credentials, timeout } = this.#options;
    if (credentials === undefined) return {};
    if (this.#token === undefined) {
      const { user: name, password } = credentials;
      const channel = this.#channel;
      try {
        const login = await channel.unary(Auth.method.authenticate, { name, password }, {}, timeout);
        this.#token = login.token;
      } catch (error) {
        // Without authentication in etcd, no login is needed.
        const isOpen =
          error instanceof EtcdError &&
          error.code === GrpcStatus.FAILED_PRECONDITION &&
          /authentication is not enabled/.test(error.message);
        if (isOpen) return {};
        throw error;
      }
    }
    return { token: this.#token };
  }
}

/** The range of all keys below `key` (after a slash), without `key` itself. */
export function rangeBelow(key: string): KeyRange {
  // The octet after the slash.
  return { from: Buffer.from(`${key}/`, "latin1"), to: Buffer.from(`${key}0`, "latin1") };
}

function wire({ from, to }: { readonly from: Uint8Array; readonly to?: Uint8Array | undefined }): {
  readonly key: Uint8Array;
  readonly rangeEnd?: Uint8Array;
} {
  return { key: from, ...(to !== undefined && { rangeEnd: to }) };
}

function operation(mutation: Mutation): MessageInitShape<typeof RequestOpSchema> {
  return "put" in mutation
    ? { request: { case: "requestPut", value: { key: mutation.put, value: mutation.value } } }
    : { request: { case: "requestDeleteRange", value: wire(mutation.remove) } };
}
