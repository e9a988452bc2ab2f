/** `etcd`: SkyDNS's records in etcd. */
import { definePlugin } from "../../plugin/index.ts";
import { config } from "./config.ts";
import { Etcd } from "./etcd.ts";

export default definePlugin({
  name: "etcd",
  summary: "Serves SkyDNS records from etcd.",
  config,
  create: (values, site) => new Etcd(values, site),
});
