/** `hosts`: names and addresses from a file in the format of /etc/hosts. */
import { definePlugin } from "../../plugin/index.ts";
import { hostsConfig } from "./config.ts";
import { Hosts } from "./hosts.ts";

export default definePlugin({
  name: "hosts",
  summary: "Answers from a file in the format of /etc/hosts, and from lines in the Corefile.",
  claims: ({ args }) => ({ zones: args.slice(1), hasFallthrough: true }),
  config: hostsConfig,
  create: (config, site) => new Hosts(config, site),
});
