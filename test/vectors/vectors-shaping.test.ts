/**
 * Answers recorded from CoreDNS 1.14.7 for the plugins that bend queries and answers, asked of this server.
 *
 * To add cases, append sets to `fixtures/vectors/shaping/<file>.jsonl` (`support/vectors/vector-set.ts` says what a set is; what is usual is
 * left out), and add a new file to `FILES`. To see one set alone:
 *
 *     npx node --test --test-name-pattern '^acl-block-all$' test/vectors/vectors-shaping.test.ts
 *
 * Where this server differs on purpose, `fixtures/vectors/shaping/differences/<plugin>.json` names the reason, and for it the sets
 * (`"acl-x"`) or cases (`"acl-x 3"`, from 1) that differ. The reason is a sentence of the section "Differences from CoreDNS" in the README of
 * the plugin, so `docs/compatibility.md` has it as well. A case that is listed and does not differ is a fault.
 */
import { replayFiles } from "../support/vectors/replay-files.ts";

const FILES = [
  "acl",
  "autopath",
  "combo",
  "config",
  "dns64",
  "geoip",
  "header",
  "hosts",
  "proxyproto",
  "rewrite",
  "shed",
  "template",
  "view",
];

replayFiles("shaping", FILES);
