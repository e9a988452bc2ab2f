/** `console`: a web page and an API that show what the server does. */
import { isLoopbackHost } from "../../console/http/loopback.ts";
import {
  definePlugin,
  directive,
  listenAddress,
  optional,
  optionList,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { ConsolePlugin } from "./console-plugin.ts";

/** `HOST:PORT` of another replica's console. */
const replica: Value<string> = {
  expected: "a host with a port, such as dns-consoles.kube-system.svc.cluster.local:8184",
  parse: (word) => {
    const [, port] = /^(?:\[[0-9a-fA-F:.]+\]|[^:[\]/]+):(\d{1,5})$/.exec(word) ?? [];
    return Number(port) >= 1 && Number(port) <= 65_535
      ? word
      : new ValueProblem(`'${word}' is not a host with a port`);
  },
};

export default definePlugin({
  name: "console",
  summary: "Shows what the server does, on a web page and through an HTTP API.",
  config: directive({
    args: { address: optional(listenAddress(), "127.0.0.1:8184") },
    options: {
      token_file: single(text("the path of a file")),
      fleet: optionList({ replicas: rest(replica, 1) }),
    },
    check({ address, token_file }, report, at) {
      const host = address.slice(0, address.lastIndexOf(":"));
      if (isLoopbackHost(host) || token_file !== undefined) return;
      report.error(
        "CONSOLE_WITHOUT_TOKEN",
        at(),
        `'${address}' makes the console reachable on ${host === "" ? "every address of this machine" : host} without a password`,
        {
          expected: "a loopback address, or 'token_file FILE' with a token that clients must send",
          notes: ["to reach a console on 127.0.0.1, run 'kubectl port-forward pod/NAME 8184'"],
        },
      );
    },
  }),
  httpAddress: ({ address }) => address,
  create: ({ address, token_file, fleet }, site) =>
    new ConsolePlugin(
      { address, tokenFile: token_file, fleet: fleet.flatMap(({ replicas }) => replicas) },
      site,
    ),
});
