/**
 * Answers recorded from CoreDNS 1.14.7 for the plugins that serve zones, asked of this server. `vectors-shaping.test.ts` says how such sets
 * are made, and where reasons stand for what differs on purpose.
 */
import { replayFiles } from "../support/vectors/replay-files.ts";

const FILES = ["auto", "file"];

replayFiles("zones", FILES);
