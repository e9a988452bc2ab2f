/** Answers that a page shows: requested when it opens, and again periodically. */
import { useEffect, useState } from "preact/hooks";
import { get } from "./api.ts";

export interface Loaded<T> {
  readonly answer: T | undefined;
  readonly problem: string;
  readonly reload: () => void;
}

/** @param period milliseconds until the next request; none unless given */
export function useAnswer<T>(
  path: string,
  parameters: Readonly<Record<string, string>>,
  period?: number,
): Loaded<T> {
  const [answer, setAnswer] = useState<T | undefined>(undefined);
  const [problem, setProblem] = useState("");
  const [round, setRound] = useState(0);
  const key = JSON.stringify(parameters);
  useEffect(() => {
    let isOver = false;
    const ask = (): void => {
      get<T>(path, parameters).then(
        (found) => {
          if (isOver) return;
          setAnswer(found);
          setProblem("");
        },
        (error: unknown) => {
          if (!isOver) setProblem(error instanceof Error ? error.message : String(error));
        },
      );
    };
    ask();
    const timer = period === undefined ? undefined : setInterval(ask, period);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [path, key, period, round]);
  return { answer, problem, reload: () => setRound(round + 1) };
}
