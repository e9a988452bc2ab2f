/** The search path of a client, as far as somebody on the server knows it (`autopath`). */
import type { Name } from "../../dns/name.ts";
import type { Query } from "../query/query.ts";

/** The names, or why there are none. */
export type SearchPath = readonly Name[] | string;

export interface SearchPathSource {
  /**
   * Whoever will ask for search paths says so once, in its `start`, which comes before that of the source: what only this is for need
   * not be read and kept otherwise.
   * @returns why no query will ever get one, as a sentence for the log; `undefined` when all is well
   */
  wantSearchPaths?(): string | undefined;
  /**
   * The names that the client appends to a relative name, first one first, without the root. Whoever is not sure says why not, in
   * words for people who follow a query: a path of somebody else leads to answers of somebody else.
   */
  searchPath(query: Query): SearchPath | Promise<SearchPath>;
}
