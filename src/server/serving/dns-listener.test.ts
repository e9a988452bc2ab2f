/** A way back that fails, as for a datagram from port 0, costs one answer and nothing else. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { untilTrue } from "../../../test/support/until-true.ts";
import { encodeMessage, makeQuery } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { Flag, Opcode, Rcode } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { CounterSlot } from "../../lib/metrics/metric-slots.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import type { Next } from "../../plugin/chain/handler.ts";
import { FixedEndpoint } from "../../plugin/message/endpoint.ts";
import { DROPPED } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { ReplyPort } from "../../transports/transport.ts";
import { DnsListener } from "./dns-listener.ts";
import { InFlight } from "./in-flight.ts";
import { RouteTable } from "./route-table.ts";

class BrokenPort implements ReplyPort {
  readonly client = new FixedEndpoint("192.0.2.1", 0, Uint8Array.of(192, 0, 2, 1));
  readonly local = new FixedEndpoint("192.0.2.2", 53, Uint8Array.of(192, 0, 2, 2));
  tries = 0;
  drops = 0;

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    return new Uint8Array(size);
  }

  send(): void {
    this.tries++;
    throw new RangeError("Port should be > 0 and < 65536");
  }

  drop(): void {
    this.drops++;
  }
}

function listen(
  chain: Next,
  maxWaiting = 5,
): { listener: DnsListener; inFlight: InFlight; errors: unknown[]; shed: CounterSlot } {
  const slot = () => new MetricsRegistry().counter({ name: "test_total", help: "Test.", labels: [] }).slot();
  const errors: unknown[] = [];
  const shed = slot();
  const inFlight = new InFlight();
  const listener = new DnsListener({
    label: "dns://:53",
    service: {
      routes: new RouteTable([{ zone: Name.root, chain, filters: [], metadata: undefined }]),
      allClasses: false,
      observer: undefined,
      inFlight,
    },
    clock: new FakeClock(),
    counters: { shed, rejected: slot(), irregular: slot(), ignored: slot() },
    onError: (error) => errors.push(error),
    maxWaiting,
  });
  return { listener, inFlight, errors, shed };
}

const query = makeQuery({ name: Name.parse("a.example."), type: RecordType.A });

describe("a reply that cannot be sent", () => {
  for (const [title, message, tries] of [
    ["of a plugin", query, 2],
    ["that rejects the message", { ...query, opcode: Opcode.UPDATE }, 1],
    ["to a message that is ignored", { ...query, flags: Flag.QR }, 0],
  ] as const) {
    test(`${title} is dropped, once`, () => {
      const { listener, errors } = listen((asked) => asked.reply());
      const port = new BrokenPort();
      const octets = encodeMessage(message);
      listener.receiver("udp").receive(octets, octets.length, port);
      assert.deepEqual([port.tries, port.drops, errors.length], [tries, 1, tries]);
    });
  }

  test("because it comes later is dropped, and no longer under way", async () => {
    for (const fails of [false, true]) {
      const answered = Promise.withResolvers<void>();
      const { listener, inFlight } = listen(async (asked) => {
        await answered.promise;
        if (fails) throw new Error("the plugin failed");
        return asked.fail(Rcode.SERVFAIL);
      });
      const port = new BrokenPort();
      const octets = encodeMessage(query);
      listener.receiver("udp").receive(octets, octets.length, port);
      assert.equal(inFlight.count, 1);
      answered.resolve();
      await inFlight.drained();
      assert.deepEqual([port.tries, port.drops, inFlight.count], [2, 1, 0]);
    }
  });
});

test("past the bound the oldest query is given up, counted, and nothing waits for it any more", async () => {
  const asked: Query[] = [];
  const { listener, inFlight, shed } = listen(
    (query) =>
      new Promise((resolve) => {
        asked.push(query);
        query.root.waiter = { abandon: () => resolve(DROPPED) };
      }),
    2,
  );
  const ports = Array.from({ length: 4 }, () => new BrokenPort());
  const octets = encodeMessage(query);
  for (const port of ports) listener.receiver("udp").receive(octets, octets.length, port);
  await untilTrue(() => inFlight.count <= 2, { between: () => Promise.resolve() });
  assert.deepEqual(
    asked.map(({ isAbandoned }) => isAbandoned),
    [true, true, false, false],
  );
  assert.equal(shed.value, 2);
  assert.deepEqual(
    ports.map(({ tries, drops }) => [tries, drops]),
    [
      [0, 1],
      [0, 1],
      [0, 0],
      [0, 0],
    ],
  );
});
