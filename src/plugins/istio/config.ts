import { checkSource, SOURCE_OPTIONS } from "../../kubernetes/api/source-options.ts";
import {
  type ConfigSchema,
  directive,
  fallthrough,
  flag,
  integer,
  ipAddress,
  option,
  rest,
  single,
  zones,
} from "../../plugin/index.ts";

export const config = directive({
  args: { zones: zones() },
  options: {
    ...SOURCE_OPTIONS,
    default_address: option({
      addresses: rest(
        ipAddress((word) => `default_address: '${word}' is not an IP address`),
        1,
      ),
    }),
    automatic_addresses: flag(),
    ttl: single(integer({ min: 0, max: 86_400 }), 3600),
    fallthrough: fallthrough(),
  },
  check: checkSource,
});

export type IstioConfig = typeof config extends ConfigSchema<infer T> ? T : never;
