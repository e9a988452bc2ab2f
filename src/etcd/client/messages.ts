/** The messages and fields of etcd's API version 3 that are used here. */

import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { messageOf } from "../../lib/text/message-of.ts";

export interface KeyValue {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
  /** 0n for none. */
  readonly lease: bigint;
  /** Revision of its last change. */
  readonly modRevision: number;
}

/** `[from, to)` of all keys; without `to` one key. */
export interface KeyRange {
  readonly from: Uint8Array;
  readonly to?: Uint8Array;
}

export interface RangeRequest extends KeyRange {
  readonly limit: number;
  /** 0 for the newest. */
  readonly revision: number;
}

export interface RangeReply {
  readonly revision: number;
  readonly entries: readonly KeyValue[];
  readonly more: boolean;
}

export interface WatchReply {
  /** As given to {@link encodeWatch}. */
  readonly watchId: number;
  readonly revision: number;
  readonly created: boolean;
  readonly canceled: boolean;
  /** If not 0, everything up to this revision has been compacted. */
  readonly compactRevision: number;
  readonly reason: string;
  /** The last revision may have further changes in the next message. */
  readonly isPart: boolean;
  readonly events: readonly EtcdEvent[];
}

export interface EtcdEvent extends KeyValue {
  readonly deleted: boolean;
}

export interface LeaseReply {
  /** Seconds left, -1 for an expired lease. */
  readonly ttl: number;
  /** The granted TTL in seconds. */
  readonly granted: number;
}

export type Mutation =
  | { readonly put: Uint8Array; readonly value: Uint8Array }
  | { readonly remove: KeyRange };

/** The octets are not a message of etcd. */
export class MessageError extends Error {
  override readonly name = "MessageError";
}

const EMPTY: Uint8Array = new Uint8Array(0);

export function encodeRange({ from, to, limit, revision }: RangeRequest): Uint8Array {
  const writer = new BinaryWriter();
  bytesField(writer, 1, from);
  if (to !== undefined) bytesField(writer, 2, to);
  if (limit > 0) writer.tag(3, WireType.Varint).int64(limit);
  if (revision > 0) writer.tag(4, WireType.Varint).int64(revision);
  return writer.finish();
}

export function decodeRange(octets: Uint8Array): RangeReply {
  const entries: KeyValue[] = [];
  let revision = 0;
  let more = false;
  readFields(octets, (field, reader) => {
    if (field === 1) revision = decodeRevision(reader.bytes());
    else if (field === 2) entries.push(decodeKeyValue(reader.bytes()));
    else if (field === 3) more = reader.bool();
    else return false;
    return true;
  });
  return { revision, entries, more };
}

/** All mutations in one transaction. */
export function encodeTransaction(mutations: readonly Mutation[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const mutation of mutations) {
    writer.tag(2, WireType.LengthDelimited).fork();
    if ("put" in mutation) {
      writer.tag(2, WireType.LengthDelimited).fork();
      bytesField(writer, 1, mutation.put);
      bytesField(writer, 2, mutation.value);
    } else {
      writer.tag(3, WireType.LengthDelimited).fork();
      bytesField(writer, 1, mutation.remove.from);
      if (mutation.remove.to !== undefined) bytesField(writer, 2, mutation.remove.to);
    }
    writer.join().join();
  }
  return writer.finish();
}

/**
 * @param watchId identifies the replies, at least 1
 * @param startRevision first revision of the watch
 */
export function encodeWatch({ from, to }: KeyRange, watchId: number, startRevision: number): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.LengthDelimited).fork();
  bytesField(writer, 1, from);
  if (to !== undefined) bytesField(writer, 2, to);
  writer.tag(3, WireType.Varint).int64(startRevision);
  writer.tag(4, WireType.Varint).bool(true);
  writer.tag(7, WireType.Varint).int64(watchId);
  // Allows fragments: changes of one revision may be split, so that no message is too long.
  writer.tag(8, WireType.Varint).bool(true);
  return writer.join().finish();
}

export function decodeWatch(octets: Uint8Array): WatchReply {
  const events: EtcdEvent[] = [];
  let watchId = 0;
  let isPart = false;
  let revision = 0;
  let created = false;
  let canceled = false;
  let compactRevision = 0;
  let reason = "";
  readFields(octets, (field, reader) => {
    if (field === 1) revision = decodeRevision(reader.bytes());
    else if (field === 2) watchId = Number(reader.int64());
    else if (field === 3) created = reader.bool();
    else if (field === 4) canceled = reader.bool();
    else if (field === 5) compactRevision = Number(reader.int64());
    else if (field === 6) reason = reader.string();
    else if (field === 7) isPart = reader.bool();
    else if (field === 11) events.push(decodeEvent(reader.bytes()));
    else return false;
    return true;
  });
  return { watchId, revision, created, canceled, compactRevision, reason, isPart, events };
}

export function encodeLeaseQuestion(lease: bigint): Uint8Array {
  return new BinaryWriter().tag(1, WireType.Varint).int64(lease).finish();
}

export function decodeLease(octets: Uint8Array): LeaseReply {
  let ttl = 0;
  let granted = 0;
  readFields(octets, (field, reader) => {
    if (field === 3) ttl = Number(reader.int64());
    else if (field === 4) granted = Number(reader.int64());
    else return false;
    return true;
  });
  return { ttl, granted };
}

export function encodeLogin(user: string, password: string): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(1, WireType.LengthDelimited).string(user);
  writer.tag(2, WireType.LengthDelimited).string(password);
  return writer.finish();
}

/** @returns the token */
export function decodeLogin(octets: Uint8Array): string {
  let token = "";
  readFields(octets, (field, reader) => {
    if (field !== 2) return false;
    token = reader.string();
    return true;
  });
  return token;
}

function decodeEvent(octets: Uint8Array): EtcdEvent {
  let deleted = false;
  let entry: KeyValue = { key: EMPTY, value: EMPTY, lease: 0n, modRevision: 0 };
  readFields(octets, (field, reader) => {
    if (field === 1) deleted = reader.int32() === 1;
    else if (field === 2) entry = decodeKeyValue(reader.bytes());
    else return false;
    return true;
  });
  return { ...entry, deleted };
}

function decodeKeyValue(octets: Uint8Array): KeyValue {
  let key = EMPTY;
  let value = EMPTY;
  let lease = 0n;
  let modRevision = 0;
  readFields(octets, (field, reader) => {
    if (field === 1) key = reader.bytes();
    else if (field === 3) modRevision = Number(reader.int64());
    else if (field === 5) value = reader.bytes();
    else if (field === 6) lease = BigInt(reader.int64());
    else return false;
    return true;
  });
  return { key, value, lease, modRevision };
}

function decodeRevision(header: Uint8Array): number {
  let revision = 0;
  readFields(header, (field, reader) => {
    if (field !== 3) return false;
    revision = Number(reader.int64());
    return true;
  });
  return revision;
}

/** @param take reads the value of a field, or returns false to skip it */
function readFields(octets: Uint8Array, take: (field: number, reader: BinaryReader) => boolean): void {
  const reader = new BinaryReader(octets);
  try {
    while (reader.pos < reader.len) {
      const [field, type] = reader.tag();
      if (!take(field, reader)) reader.skip(type, field);
    }
  } catch (error) {
    if (error instanceof MessageError) throw error;
    throw new MessageError(messageOf(error));
  }
}

function bytesField(writer: BinaryWriter, field: number, octets: Uint8Array): void {
  writer.tag(field, WireType.LengthDelimited).bytes(octets);
}
