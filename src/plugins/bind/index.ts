/** `bind`: the addresses that a server block listens on. */
import { restTokens } from "../../plugin/config/arguments.ts";
import { definePlugin, directive, merged, optionList } from "../../plugin/index.ts";
import { listenHosts } from "./listen-hosts.ts";

const EXPECTED = "an IP address, or the name of an interface of this machine";

export default definePlugin({
  name: "bind",
  summary: "Listens on the given addresses or interfaces instead of on all of them.",
  config: merged(
    directive({
      args: { addresses: restTokens() },
      options: { except: optionList({ addresses: restTokens() }) },
      occurrences: "each",
      check({ addresses, except }, report, at) {
        if (addresses.length === 0) {
          const message = "at least one address or interface name is expected";
          report.error("PLUGIN_ARGUMENT_MISSING", at(), message, { expected: EXPECTED });
        }
        if (except.some((line) => line.addresses.length === 0)) {
          const message = "at least one address or interface must be given to except subdirective";
          report.error("PLUGIN_ARGUMENT_MISSING", at("except"), message, { expected: EXPECTED });
        }
      },
    }),
  ),
  configure(lines, settings, { machine, report, span }) {
    const hosts = listenHosts(lines, machine, (token) => {
      const message = `not a valid IP address or interface name: "${token.text}"`;
      report.error("PLUGIN_BAD_VALUE", token.span, message, { expected: EXPECTED });
    });
    if (hosts === undefined) return;
    settings.listenHosts = hosts;
    settings.listensNowhere = hosts.length === 0;
    if (settings.listensNowhere) {
      report.warning("BIND_NO_ADDRESS", span, "no address is left, so this server block listens nowhere", {
        notes: ["'except' removes every address of 'bind', or the interface has no address"],
      });
    }
  },
});
