/** Client of etcd's API version 3 with several endpoints: if one does not answer, the next is used. */
import type { Clock } from "../../lib/time/clock.ts";
import { EtcdError, StatusCode } from "./etcd-error.ts";
import { GrpcChannel, type Metadata, type TlsFiles } from "./grpc-channel.ts";
import {
  decodeLease,
  decodeLogin,
  decodeRange,
  decodeWatch,
  encodeLeaseQuestion,
  encodeLogin,
  encodeRange,
  encodeTransaction,
  encodeWatch,
  type KeyRange,
  type LeaseReply,
  MessageError,
  type Mutation,
  type RangeReply,
  type RangeRequest,
  type WatchReply,
} from "./messages.ts";

export interface EtcdClientOptions {
  /** URLs, at least one. */
  readonly endpoints: readonly string[];
  readonly tls?: TlsFiles | undefined;
  readonly credentials?: { readonly user: string; readonly password: string } | undefined;
  readonly clock: Clock;
  /** Milliseconds for one call. */
  readonly timeout: number;
}

export interface WatchedRange {
  readonly range: KeyRange;
  /** The last revision whose changes are known. */
  readonly revision: number;
}

export interface WatchReceiver {
  reply(reply: WatchReply): void;
  /** The watch has ended; called once. */
  ended(error: EtcdError): void;
}

export interface Watch {
  close(): void;
}

export class EtcdClient {
  readonly #options: EtcdClientOptions;
  readonly #channels: readonly GrpcChannel[];
  #current = 0;
  #token: string | undefined;

  constructor(options: EtcdClientOptions) {
    const { endpoints, tls, clock } = options;
    this.#options = options;
    this.#channels = endpoints.map((url) => new GrpcChannel({ url, tls, clock }));
  }

  /** The current endpoint. */
  get endpoint(): string {
    return this.#channel.url;
  }

  /** @throws EtcdError */
  async range(request: RangeRequest): Promise<RangeReply> {
    return decodeRange(await this.#call("/etcdserverpb.KV/Range", encodeRange(request)));
  }

  /**
   * Changes several keys atomically. By default, etcd takes 128 changes at a time.
   * @throws EtcdError
   */
  async change(mutations: readonly Mutation[]): Promise<void> {
    await this.#call("/etcdserverpb.KV/Txn", encodeTransaction(mutations));
  }

  /** @throws EtcdError */
  async lease(id: bigint): Promise<LeaseReply> {
    return decodeLease(await this.#call("/etcdserverpb.Lease/LeaseTimeToLive", encodeLeaseQuestion(id)));
  }

  /**
   * Watches these ranges over one stream, each from the revision after its own. The replies identify them by position, from 1.
   * @throws EtcdError if the watch cannot start
   */
  async watch(ranges: readonly WatchedRange[], receiver: WatchReceiver): Promise<Watch> {
    const token = await this.#login();
    const channel = this.#channel;
    // Otherwise a member that has lost the others would stay silent forever.
    const metadata = { ...token, hasleader: "true" };
    const stream = channel.open("/etcdserverpb.Watch/Watch", metadata, {
      message: (octets) => {
        try {
          receiver.reply(decodeWatch(octets));
        } catch (error) {
          if (!(error instanceof MessageError)) throw error;
          stream.close();
        }
      },
      ended: (error) => {
        this.#look(error, channel);
        receiver.ended(error);
      },
    });
    for (const [index, { range, revision }] of ranges.entries())
      stream.send(encodeWatch(range, index + 1, revision + 1));
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

  async #call(path: string, message: Uint8Array): Promise<Uint8Array> {
    let attempts = this.#channels.length;
    let mayLogin = true;
    for (;;) {
      const channel = this.#channel;
      try {
        const metadata = await this.#login();
        return await channel.unary(path, message, metadata, this.#options.timeout);
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
      const login = encodeLogin(credentials.user, credentials.password);
      const channel = this.#channel;
      try {
        this.#token = decodeLogin(await channel.unary("/etcdserverpb.Auth/Authenticate", login, {}, timeout));
      } catch (error) {
        // Without authentication in etcd, no login is needed.
        const isOpen =
          error instanceof EtcdError &&
          error.code === StatusCode.FAILED_PRECONDITION &&
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
