/** `tsig`: verifies signed queries, and signs the replies (RFC 8945). */
import { definePlugin } from "../../plugin/index.ts";
import { tsigConfig } from "./config.ts";
import { TransactionSignatures } from "./handler.ts";

export default definePlugin({
  name: "tsig",
  summary: "Verifies TSIG signatures of queries, and signs the responses (RFC 8945).",
  config: tsigConfig,
  create: (config, site) => new TransactionSignatures(config, site),
});
