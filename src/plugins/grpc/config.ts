import { tlsFiles } from "../../plugin/config/tls-files.ts";
import {
  type ConfigSchema,
  choice,
  directive,
  fallthrough,
  option,
  optionList,
  single,
  text,
} from "../../plugin/index.ts";
import { POLICY_NAMES } from "../../upstream/config/policy.ts";
import { fromZone, targets, zonesGiven } from "../../upstream/directive-words.ts";

const encryptedBy = "an address without a scheme, and the option 'tls', which encrypts";

export const config = directive({
  args: {
    from: fromZone,
    to: targets({ plugin: "grpc", schemes: ["dns", "grpc"], sockets: "grpc", encryptedBy }),
  },
  options: {
    except: optionList({ ignored_names: zonesGiven }),
    tls: option({ files: tlsFiles }),
    tls_servername: single(text("the name in the certificate of the upstreams")),
    policy: single(choice(POLICY_NAMES, { problem: (word) => `unknown policy '${word}'` }), "random"),
    fallthrough: fallthrough(),
  },
  occurrences: "each",
});

export type GrpcConfig = typeof config extends ConfigSchema<infer T> ? T : never;
