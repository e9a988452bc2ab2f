/** `k8s_external`: services under their external addresses. */
import { definePlugin } from "../../plugin/index.ts";
import { config } from "./config.ts";
import { KubernetesExternal } from "./kubernetes-external.ts";

export default definePlugin({
  name: "k8s_external",
  summary: "Serves the external addresses of Kubernetes Services in zones of your own.",
  claims: ({ args }) => ({ zones: args, hasFallthrough: true }),
  needs: ["kubernetes"],
  config,
  create: (values, site) => new KubernetesExternal(values, site),
});
