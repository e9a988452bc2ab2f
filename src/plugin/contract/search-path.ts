/** The search path of a client, if a plugin knows it (`autopath`). */
import type { Name } from "../../dns/name.ts";
import type { Query } from "../query/query.ts";

/** The names, or the reason why there is no search path. */
export type SearchPath = readonly Name[] | string;

/** A plugin that knows the search path of clients. */
export interface SearchPathSource {
  /**
   * Announces that search paths will be requested. Called once, in the requester's `start`, which comes before that
   * of the source, so that the source reads and keeps data for search paths only if they are needed.
   * @returns the reason, as a sentence for the log, if no query will ever get a search path; `undefined` otherwise
   */
  wantSearchPaths?(): string | undefined;
  /**
   * The names that the client appends to a relative name, in order and without the root. A source that is not sure
   * returns the reason in words for a trace: the path of another client leads to the answers of another client.
   */
  searchPath(query: Query): SearchPath | Promise<SearchPath>;
}
