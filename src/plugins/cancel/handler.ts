import type { Handler } from "../../plugin/index.ts";

/** Sets the deadline of each query, counted from its arrival; an earlier deadline stays. @param timeout milliseconds */
export function withDeadline(timeout: number): Handler {
  return (query, next) => {
    query.deadline = Math.min(query.deadline, query.receivedAt + timeout);
    return next(query);
  };
}
