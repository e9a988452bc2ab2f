/** Signed queries, and what CoreDNS 1.14.7 answered to them; `differences/tsig.json` says where this server answers otherwise, and why. */
import { replayRecorded } from "../support/vectors/replay-recorded.ts";

replayRecorded("tsig");
