/**
 * Answers that CoreDNS 1.14.7 signed on the fly; `differences/dnssec.json` lists where this server signs otherwise,
 * and why.
 */
import { replayRecorded } from "../support/vectors/replay-recorded.ts";
import { withoutMoments } from "../support/vectors/signed-reply.ts";

replayRecorded("dnssec", (reply) => withoutMoments(reply));
