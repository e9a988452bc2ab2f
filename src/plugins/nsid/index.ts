/** `nsid`: the name of this server, for clients that request it (RFC 5001). */
import { definePlugin, directive, rest, text } from "../../plugin/index.ts";
import { IdentifierHandler } from "./handler.ts";

/** The length of a host name; a longer one would leave no room for records in a reply of 512 octets. */
const MAX_OCTETS = 255;

export default definePlugin({
  name: "nsid",
  summary: "Adds an identifier of the server to responses, for clients that ask for it (RFC 5001).",
  config: directive({
    args: { data: rest(text()) },
    check({ data }, report, at) {
      const octets = Buffer.byteLength(data.join(" "));
      if (octets <= MAX_OCTETS) return;
      report.error("PLUGIN_BAD_VALUE", at(), `the identifier is too long: ${octets} octets`, {
        expected: `at most ${MAX_OCTETS} octets`,
      });
    },
  }),
  create({ data }, { machine }) {
    const identifier = data.length > 0 ? data.join(" ") : machine.hostname || "localhost";
    return { handle: new IdentifierHandler(identifier).handle };
  },
});
