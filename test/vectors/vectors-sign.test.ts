/** A zone that CoreDNS 1.14.7 signed; `differences/sign.json` lists where this server signs otherwise, and why. */
import { replayRecorded } from "../support/vectors/replay-recorded.ts";
import { withoutMoments } from "../support/vectors/signed-reply.ts";

/** The serial is the time of signing. */
const withoutSerial = (record: string): string =>
  record.replace(/(?<= SOA \S+ \S+ )(?:\{now\}|\d{10}) /, "NOW ");

replayRecorded("sign", (reply) => withoutMoments(reply, withoutSerial));
