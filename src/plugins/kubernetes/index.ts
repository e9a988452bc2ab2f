/** `kubernetes`: the names of a cluster's services and pods. */
import { definePlugin } from "../../plugin/index.ts";
import { config } from "./config.ts";
import { KubernetesInstance } from "./instance.ts";

export default definePlugin({
  name: "kubernetes",
  summary: "Serves the Services and Pods of a Kubernetes cluster.",
  claims: ({ args }) => ({ zones: args, hasFallthrough: true }),
  config,
  create: (values, site) => new KubernetesInstance(values, site),
});
