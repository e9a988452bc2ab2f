import { A, AAAA, Name, NameError, type ResourceRecord, SRV } from "../../dns/index.ts";
import type { Query, Reply } from "../../plugin/index.ts";

/** An empty answer; the client's address and port are in the additional section. */
export function answerWhoami(query: Query): Reply {
  const { client, name } = query;
  const data = { address: client.address };
  const address =
    client.family === 4 ? A.create(name, 0, data, query.class) : AAAA.create(name, 0, data, query.class);
  const port = portRecord(query);
  query.trace?.note("the client asked from here", { address: client.address, port: client.port });
  return query.reply({ authoritative: true, additional: port === undefined ? [address] : [address, port] });
}

/** `undefined` for a name without room for another label. */
function portRecord(query: Query): ResourceRecord | undefined {
  try {
    const owner = query.name.prepend(query.overStream ? "_tcp" : "_udp");
    const data = { priority: 0, weight: 0, port: query.client.port, target: Name.root };
    return SRV.create(owner, 0, data, query.class);
  } catch (error) {
    if (error instanceof NameError) return undefined;
    throw error;
  }
}
