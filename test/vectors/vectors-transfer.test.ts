/** Zones as CoreDNS 1.14.7 transfers them; `differences/` lists where this server differs, and why. */
import { replayRecorded } from "../support/vectors/replay-recorded.ts";

replayRecorded("transfer");
replayRecorded("secondary");
