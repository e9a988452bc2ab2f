/**
 * Sends an answer of many messages: as fast as the client reads, and at most one message in each turn of the event
 * loop.
 */
import { Flag } from "../../dns/numbers.ts";
import type { Outcome, ReplyStream } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import type { PartPort, ReplyPort } from "../../transports/transport.ts";
import { writeReply } from "./reply-writer.ts";
import type { StreamTurns } from "./stream-turns.ts";

/**
 * @param turns shared by all streams
 * @param port kept until the promise resolves
 * @returns the error of a message, if any. Never rejects.
 */
export async function sendStream(
  query: Query,
  stream: ReplyStream,
  port: ReplyPort,
  turns: StreamTurns,
): Promise<unknown> {
  const { parts } = port;
  const error =
    parts === undefined
      ? await sendFirst(query, stream, port)
      : await sendAll(query, stream, port, parts, turns);
  return error === undefined ? endStream(stream) : broken(stream, error);
}

async function sendAll(
  query: Query,
  stream: ReplyStream,
  port: ReplyPort,
  parts: PartPort,
  turns: StreamTurns,
): Promise<unknown> {
  const makeOne = async (): Promise<"end" | "more" | "full"> => {
    const next = await stream.parts.next();
    if (next.done === true || !parts.isOpen) return "end";
    const length = writeReply(query, next.value, port);
    count(stream, next.value, length);
    return parts.sendPart(length) ? "more" : "full";
  };
  try {
    // The first message is made at once: its data may be replaced as soon as the stream does not hold it.
    for (let made = await makeOne(); made !== "end"; made = await turns.run(makeOne)) {
      if (made === "full") await parts.drained();
    }
  } catch (error) {
    parts.abort();
    port.drop();
    return error;
  }
  port.drop();
  return undefined;
}

/** The reply that represents an outcome where only one can be shown; `undefined` without a message. */
export async function firstReply(outcome: Outcome): Promise<Reply | undefined> {
  if (outcome.kind === "reply") return outcome;
  if (outcome.kind !== "stream") return undefined;
  const { value, done } = await outcome.parts.next();
  await endStream(outcome);
  return done === true ? undefined : value;
}

async function sendFirst(query: Query, stream: ReplyStream, port: ReplyPort): Promise<unknown> {
  try {
    const first = await stream.parts.next();
    if (first.done === true) {
      port.drop();
      return undefined;
    }
    const second = await stream.parts.next();
    if (second.done !== true) first.value.setFlag(Flag.TC, true);
    const length = writeReply(query, first.value, port);
    count(stream, first.value, length);
    port.send(length);
  } catch (error) {
    port.drop();
    return error;
  }
  return undefined;
}

function count(stream: ReplyStream, { flags }: Reply, length: number): void {
  stream.sentOctets += length;
  stream.flags = flags;
}

/** A message could not be made: closes its maker, and keeps the first error. */
async function broken(stream: ReplyStream, error: unknown): Promise<unknown> {
  await endStream(stream);
  return error;
}

/**
 * Lets the maker of the messages release its resources.
 * @returns its error, if any. Never rejects.
 */
export async function endStream(stream: ReplyStream): Promise<unknown> {
  try {
    try {
      await stream.parts.return?.();
    } finally {
      stream.end();
    }
    return undefined;
  } catch (error) {
    return error;
  }
}
