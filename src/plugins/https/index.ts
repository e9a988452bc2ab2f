/** `https`: limits for DNS over HTTPS listeners. */
import { definePlugin, directive, integer, single } from "../../plugin/index.ts";

const LARGEST = 0xffff_ffff;

const streams = integer({
  min: 0,
  max: LARGEST,
  problem: (word) =>
    /^\+?\d+$/.test(word)
      ? `max_streams must not exceed ${LARGEST}: ${word}`
      : `max_streams must be a non-negative integer: ${word}`,
});

export default definePlugin({
  name: "https",
  summary: "Limits the connections of DNS over HTTPS listeners, and the streams on each.",
  config: directive({
    options: { max_connections: single(integer({ min: 0 })), max_streams: single(streams) },
    occurrences: "first",
  }),
  configure({ max_connections, max_streams }, settings) {
    settings.maxHttpsConnections = max_connections ?? settings.maxHttpsConnections;
    settings.maxHttpsStreams = max_streams ?? settings.maxHttpsStreams;
  },
});
