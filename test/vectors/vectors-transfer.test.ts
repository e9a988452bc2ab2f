/** Zones as CoreDNS 1.14.7 hands them out and takes them; `differences/` says where this server does otherwise, and why. */
import { replayRecorded } from "../support/vectors/replay-recorded.ts";

replayRecorded("transfer");
replayRecorded("secondary");
