import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { data, frame, GET, get, MESSAGE, number, post, scene, settings } from "./fixtures/raw-client.ts";
import { ErrorCode, FrameFlag, FrameType, PREFACE, Setting } from "./http2-frames.ts";

const { END_STREAM, END_HEADERS, PADDED } = FrameFlag;

describe("a fault ends the connection", () => {
  for (const [title, code, ...octets] of [
    ["another protocol", ErrorCode.PROTOCOL_ERROR, Buffer.from("GET / HTTP/1.1\r\nHost: dns\r\n\r\n")],
    ["no settings", ErrorCode.PROTOCOL_ERROR, PREFACE, get(1)],
    [
      "an acknowledgement in place of settings",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      frame(FrameType.SETTINGS, FrameFlag.ACK, 0),
    ],
    ["an even stream number", ErrorCode.PROTOCOL_ERROR, PREFACE, settings(), get(2)],
    ["a request on stream 0", ErrorCode.PROTOCOL_ERROR, PREFACE, settings(), get(0)],
    ["DATA on a stream that is not there", ErrorCode.PROTOCOL_ERROR, PREFACE, settings(), data(1, MESSAGE)],
    [
      "a reset of an idle stream",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.RST_STREAM, 0, 1, number(8)),
    ],
    [
      "a window for an idle stream",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.WINDOW_UPDATE, 0, 1, number(8)),
    ],
    [
      "a window increment of 0 for the connection",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.WINDOW_UPDATE, 0, 0, number(0)),
    ],
    [
      "a window that overflows",
      ErrorCode.FLOW_CONTROL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.WINDOW_UPDATE, 0, 0, number(0x7fff_ffff)),
    ],
    [
      "a setting that overflows",
      ErrorCode.FLOW_CONTROL_ERROR,
      PREFACE,
      settings([Setting.INITIAL_WINDOW_SIZE, 0x8000_0000]),
    ],
    [
      "an invalid value of ENABLE_PUSH",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings([Setting.ENABLE_PUSH, 2]),
    ],
    [
      "frames smaller than allowed",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings([Setting.MAX_FRAME_SIZE, 100]),
    ],
    [
      "settings of an odd size",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      frame(FrameType.SETTINGS, 0, 0, Buffer.alloc(7)),
    ],
    [
      "settings by the hundred in a frame",
      ErrorCode.ENHANCE_YOUR_CALM,
      PREFACE,
      frame(FrameType.SETTINGS, 0, 0, Buffer.alloc(600)),
    ],
    ["settings on a stream", ErrorCode.PROTOCOL_ERROR, PREFACE, settings(), frame(FrameType.SETTINGS, 0, 1)],
    [
      "an acknowledgement with octets",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.SETTINGS, FrameFlag.ACK, 0, Buffer.alloc(6)),
    ],
    [
      "a short ping",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.PING, 0, 0, Buffer.alloc(7)),
    ],
    [
      "a short reset",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      settings(),
      post(1),
      frame(FrameType.RST_STREAM, 0, 1, Buffer.alloc(3)),
    ],
    [
      "a push",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.PUSH_PROMISE, END_HEADERS, 1, GET),
    ],
    [
      "more padding than payload",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      post(1),
      data(1, Buffer.from([5, 0, 0]), PADDED),
    ],
    [
      "padding in an empty frame",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      post(1),
      data(1, Buffer.alloc(0), PADDED),
    ],
    [
      "a frame that is too long",
      ErrorCode.FRAME_SIZE_ERROR,
      PREFACE,
      settings(),
      frame(99, 0, 0, Buffer.alloc(16_385)),
    ],
    [
      "a header that is interrupted",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, 0, 1, GET),
      get(3),
    ],
    [
      "a header that continues on another stream",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, 0, 1, GET),
      frame(FrameType.CONTINUATION, END_HEADERS, 3),
    ],
    [
      "CONTINUATION of nothing",
      ErrorCode.PROTOCOL_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.CONTINUATION, END_HEADERS, 1, GET),
    ],
    [
      "an endless header",
      ErrorCode.ENHANCE_YOUR_CALM,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, 0, 1, GET),
      ...Array.from({ length: 17 }, () => frame(FrameType.CONTINUATION, 0, 1)),
    ],
    [
      "a header that is too long",
      ErrorCode.ENHANCE_YOUR_CALM,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, 0, 1, Buffer.alloc(16_000, 0x82)),
      frame(FrameType.CONTINUATION, 0, 1, Buffer.alloc(400, 0x82)),
    ],
    [
      "a header that is not HPACK",
      ErrorCode.COMPRESSION_ERROR,
      PREFACE,
      settings(),
      frame(FrameType.HEADERS, END_HEADERS, 1, Buffer.from([0xff, 0xff])),
    ],
    [
      "trailers that are not HPACK",
      ErrorCode.COMPRESSION_ERROR,
      PREFACE,
      settings(),
      post(1),
      frame(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, Buffer.from([0x80])),
    ],
    [
      "more than the window allows",
      ErrorCode.FLOW_CONTROL_ERROR,
      PREFACE,
      settings(),
      post(1),
      ...Array.from({ length: 17 }, () => data(1, Buffer.alloc(16_384), 0)),
    ],
  ] as const) {
    test(title, async () => {
      await scene(async ({ connect, faults, budget }) => {
        const client = (await connect()).send(...octets);
        if (title === "more than the window allows") {
          // The stream is reset first.
          assert.equal(await client.resetOf(1), ErrorCode.NO_ERROR);
          return;
        }
        const closed = once(client.socket, "close");
        assert.equal(await client.goodbye(), code);
        await closed;
        assert.equal(faults(), 1);
        assert.equal(budget.unsent, 0);
      });
    });
  }

  for (const [title, ...octets] of [
    ["pings", frame(FrameType.PING, 0, 0, Buffer.alloc(8))],
    ["settings", settings()],
    ["windows", frame(FrameType.WINDOW_UPDATE, 0, 0, number(1))],
    ["unknown frames", frame(77, 0, 0)],
    ["crumbs of a body", data(1, Buffer.from("x"), 0)],
    ["empty parts of a body", data(1, Buffer.alloc(0), 0)],
  ] as const) {
    test(`${title} by the thousand`, async () => {
      await scene(async ({ connect, clock }) => {
        const client = (await connect()).greet().send(post(1));
        const half = Buffer.concat(Array.from({ length: 450 }, () => octets).flat());
        client.send(half, half);
        await client.ping();
        // The same number over a longer time is not a flood.
        clock.advance(30_000);
        client.send(get(3), half);
        await client.ping();
        client.send(half, half);
        assert.equal(await client.goodbye(), ErrorCode.ENHANCE_YOUR_CALM);
      });
    });
  }

  for (const [title, octets] of [
    ["that are not whole", post],
    ["that are being answered", get],
  ] as const) {
    test(`requests ${title}, and resets of them, by the thousand`, async () => {
      await scene(async ({ connect, receiver }) => {
        receiver.answers = false;
        const client = (await connect()).greet();
        const ids = Array.from({ length: 1100 }, (_, index) => 2 * index + 1);
        client.send(
          ...ids.flatMap((id) => [octets(id), frame(FrameType.RST_STREAM, 0, id, number(ErrorCode.CANCEL))]),
        );
        assert.equal(await client.goodbye(), ErrorCode.ENHANCE_YOUR_CALM);
        // Resetting a stream does not make room for another query.
        assert.ok(receiver.received <= 250);
      });
    });
  }
});
