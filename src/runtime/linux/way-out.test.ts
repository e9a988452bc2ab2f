import assert from "node:assert/strict";
import { test } from "node:test";
import { Linux } from "./layouts.ts";
import { type Libc, NoForeignFunctions, setSocketNumber, socketNumber } from "./libc.ts";
import { linuxSockets } from "./linux-sockets.ts";
import { WayOut } from "./way-out.ts";

const found = await linuxSockets();
const options = { skip: found instanceof NoForeignFunctions ? "koffi is not available" : false };

function socketOf(libc: Libc, discovery: number): number {
  const fd = libc.socket(Linux.AF_INET6, Linux.SOCK_DGRAM | Linux.SOCK_CLOEXEC, 0);
  assert.equal(setSocketNumber(libc, fd, Linux.IPPROTO_IP, Linux.IP_MTU_DISCOVER, discovery), 0);
  return fd;
}

test(
  "small datagrams are kept whole, and those that leave with or soon behind a large one are not",
  options,
  () => {
    assert.ok(!(found instanceof NoForeignFunctions));
    const { libc } = found;
    const fd = socketOf(libc, Linux.IP_PMTUDISC_WANT);
    let calls = 0;
    const counting: Libc = {
      ...libc,
      setsockopt: (...parameters) => {
        calls++;
        return libc.setsockopt(...parameters);
      },
    };
    const wayOut = new WayOut(counting, fd, true);
    const whole = (): boolean =>
      socketNumber(libc, fd, Linux.IPPROTO_IP, Linux.IP_MTU_DISCOVER) === Linux.IP_PMTUDISC_DO;
    const after = (octets: number): boolean => {
      wayOut.prepare(octets);
      return whole();
    };
    assert.deepEqual([512, 100, 12].map(after), [true, true, true]);
    assert.deepEqual([513, 100, 1_232, 100, 100, 100, 100, 100, 100].map(after), [
      false,
      false,
      false,
      false,
      false,
      false,
      false,
      true,
      true,
    ]);
    assert.equal(calls, 3);
    // A link of this machine took less than a small one.
    assert.ok(wayOut.letCut());
    assert.ok(!whole());
    assert.ok(!wayOut.letCut());
    libc.close(fd);
  },
);

test("what the machine is set up for stays as it is", options, () => {
  assert.ok(!(found instanceof NoForeignFunctions));
  const { libc } = found;
  for (const [discovery, takesIpv4] of [
    [0, true],
    [Linux.IP_PMTUDISC_WANT, false],
  ] as const) {
    const fd = socketOf(libc, discovery);
    const wayOut = new WayOut(libc, fd, takesIpv4);
    wayOut.prepare(100);
    assert.equal(socketNumber(libc, fd, Linux.IPPROTO_IP, Linux.IP_MTU_DISCOVER), discovery);
    assert.ok(!wayOut.letCut());
    libc.close(fd);
  }
});
