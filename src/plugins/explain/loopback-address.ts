/** Parses addresses that only this machine can reach. */
import { isLoopbackHost } from "../../console/http/loopback.ts";
import { listenAddress, type Value, ValueProblem } from "../../plugin/index.ts";

/** `127.0.0.1:8183`, `[::1]:8183`; `localhost` always means 127.0.0.1, whatever the machine resolves it to. */
export function loopbackAddress(): Value<string> {
  const address = listenAddress();
  return {
    expected: "a loopback address with a port, such as 127.0.0.1:8183 or [::1]:8183",
    parse(word, context) {
      const read = address.parse(word, context);
      if (typeof read !== "string") return read;
      const at = read.lastIndexOf(":");
      const host = read.slice(0, at);
      if (!isLoopbackHost(host)) return new ValueProblem(problem(word, host));
      return host.toLowerCase() === "localhost" ? `127.0.0.1${read.slice(at)}` : read;
    },
  };
}

function problem(word: string, host: string): string {
  const whom = host === "" ? "every address of this machine" : `${host}, which is not a loopback address`;
  return (
    `'${word}' would make explain reachable on ${whom}: it has no password, shows the configuration and sends queries, ` +
    "so it answers only on loopback addresses"
  );
}
