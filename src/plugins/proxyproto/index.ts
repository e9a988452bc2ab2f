/** `proxyproto`: takes the addresses of clients from a proxy (docs/spec/coredns-behaviour.md#proxy-protocol). */
import { definePlugin, type Query } from "../../plugin/index.ts";
import { proxyConfig } from "./config.ts";
import { ProxyGreeting } from "./proxy-greeting.ts";

export default definePlugin({
  name: "proxyproto",
  summary: "Takes client addresses from PROXY protocol headers.",
  config: proxyConfig,
  configure(config, settings) {
    settings.greeting = new ProxyGreeting(config);
  },
  create({ tlvMetadata }, { block, clock, log }) {
    const { greeting } = block.settings;
    if (greeting instanceof ProxyGreeting) greeting.begin(clock, log);
    return tlvMetadata ? { provideMetadata } : {};
  },
});

/** The raw vector in hexadecimal digits, which consumers have to parse. */
function provideMetadata(query: Query): void {
  const { proxyExtensions } = query.client;
  if (proxyExtensions === undefined) return;
  query.setMetadata("proxyproto/tlv", () => Buffer.from(proxyExtensions).toString("hex"));
}
