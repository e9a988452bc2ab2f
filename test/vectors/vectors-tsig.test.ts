/** Signed queries and CoreDNS 1.14.7's answers; `differences/tsig.json` lists where this server differs, and why. */
import { replayRecorded } from "../support/vectors/replay-recorded.ts";

replayRecorded("tsig");
