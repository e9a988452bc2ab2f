import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { type ConnectionAccount, REPLY_OBJECTS_OCTETS } from "../connection-budget.ts";
import { FrameSender } from "./frame-sender.ts";
import { OutputSlab } from "./gathered-output.ts";
import { FrameType } from "./http2-frames.ts";

/** A socket whose client reads nothing. */
class FullSocket extends Socket {
  override writableLength = 0;

  override write(octets: Uint8Array | string): boolean {
    this.writableLength += octets.length;
    return false;
  }
}

for (const [title, socket, copies] of [
  ["counts once in the clear", new FullSocket(), 1],
  [
    "counts twice over TLS, which also keeps it encrypted",
    Object.assign(new FullSocket(), { encrypted: true }),
    2,
  ],
] as const)
  test(`unread data ${title}`, () => {
    let held = 0;
    const account: ConnectionAccount = {
      unsentLimit: 1_000_000,
      takes: () => true,
      hasRoomFor: () => true,
      notePassed: () => undefined,
      heardFrom: () => undefined,
      giveUp: () => undefined,
      holds(octets) {
        held = octets;
      },
    };
    const user = { finished: () => undefined, unread: () => undefined };
    const sender = new FrameSender(socket, account, new OutputSlab(), user, false);
    sender.writeFrame(FrameType.DATA, 0, 1, new Uint8Array(991));
    sender.output.flush();
    assert.equal(held, copies * 1_000 + REPLY_OBJECTS_OCTETS);
    sender.closed();
    assert.equal(held, 0);
  });
