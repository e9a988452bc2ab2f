/** `geoip`: the location of a client, as metadata. */
import { definePlugin, directive, flag, required, text } from "../../plugin/index.ts";
import { GeoIp } from "./geo-ip.ts";

export default definePlugin({
  name: "geoip",
  summary: "Looks up the location of clients, as metadata for other plugins.",
  config: directive({
    args: { dbfile: required(text("the path of a MaxMind database")) },
    options: { "edns-subnet": flag() },
  }),
  create: (config, site) => new GeoIp(config.dbfile, config["edns-subnet"], site),
});
